-- purpose: how many places of a queue with a limit are free or may soon be, and whether all are taken; null
--   if nothing limits the queue
-- caller: function held_groups, function withdraw
-- transition: none
-- fence: none
-- index: queues_pkey, executions_queue_slot
--
-- What was claimed within the last two seconds may be short, and its place free again before the next look
-- for slots: somebody should stand ready for it, or else short executions would leave the queue idle between
-- two looks. What has run for longer is not expected to end at any moment, and who stood ready for its place
-- would keep a slot from others meanwhile. One may always stand ready, so that its rank counts when a place
-- comes free: or else whoever is under no limit, and stands there, would have each of them. Counted no
-- further than the limit, like a claim does.
create or replace function foliot.queue_places(p_queue text, p_moment timestamptz)
returns jsonb
language plpgsql stable
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  return (
    select jsonb_build_object(
             'places', case when q.concurrency_limit > 0 then greatest(q.concurrency_limit - r.long, 1) else 0 end,
             'full', r.running >= q.concurrency_limit)
      from foliot.queues q
     cross join lateral (
           select count(*) as running,
                  count(*) filter (where r.claimed_at <= p_moment - interval '2 seconds') as long
             from (select e.claimed_at from foliot.executions e
                    where e.queue = p_queue and e.queue_slot and e.status = 'RUNNING'
                    limit q.concurrency_limit) r) r
     where q.name = p_queue and q.concurrency_limit is not null);
end
$$;
