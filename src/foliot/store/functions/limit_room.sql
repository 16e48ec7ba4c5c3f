-- purpose: how many more may go on under each key, and when a rate has room again; null where nothing
--   limits it, or where no time can be told
-- caller: function held_groups, function admit, function explain_limits
-- transition: none
-- fence: none
-- index: limits_pkey, executions_slot_1, executions_slot_2, executions_slot_3, rate_starts_key
--
-- A slot is held by a row that has a rank: it may be claimed at any moment, or it runs. It comes back
-- when the row is over, retried, handed back or rescued, because all of these take the rank away.
--
-- Of a rate those are used that were claimed within its time, and those that may be claimed at any moment,
-- however long ago they were let go: nobody can save up starts while no worker is there. Of any starts
-- within one such time, all others had been counted when the last of them was let go.
create or replace function foliot.limit_room(p_keys text[], p_moment timestamptz)
returns table (n bigint, key text, room bigint, opens_at timestamptz)
language plpgsql stable rows 10
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  return query
  select k.n, k.key, least(l.max_running - held.slots, l.rate_count - held.ready - recent.started),
         (select s.at + make_interval(secs => l.rate_seconds)
            from (select s.at, sum(s.started) over (order by s.at) as left_by_then
                    from foliot.rate_starts s
                   where s.key = k.key and s.at > p_moment - make_interval(secs => l.rate_seconds)) s
           where l.rate_count <= held.ready + recent.started
             and s.left_by_then > held.ready + recent.started - l.rate_count
           order by s.at limit 1)
    from unnest(p_keys) with ordinality k(key, n)
    left join lateral (select l.max_running, l.rate_count, l.rate_seconds
                         from foliot.limits l where l.key = k.key offset 0) l on true
   cross join lateral (
         select count(*) as slots, count(*) filter (where h.worker_id is null) as ready
           from (select e.worker_id from foliot.executions e
                  where e.limit_keys[1] = k.key and e.limit_keys[1] is not null and e.rank is not null
                  union all
                 select e.worker_id from foliot.executions e
                  where e.limit_keys[2] = k.key and e.limit_keys[2] is not null and e.rank is not null
                  union all
                 select e.worker_id from foliot.executions e
                  where e.limit_keys[3] = k.key and e.limit_keys[3] is not null and e.rank is not null)
                h) held
   cross join lateral (
         select coalesce(sum(s.started), 0) as started
           from foliot.rate_starts s
          where s.key = k.key and s.at > p_moment - make_interval(secs => l.rate_seconds)) recent;
end
$$;
