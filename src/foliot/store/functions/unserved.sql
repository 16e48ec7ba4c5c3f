-- purpose: lanes whose rows nobody is there to claim for a while now: how many wait in each, and the first
-- caller: sql lanes/list_unserved
-- transition: none
-- fence: none
-- index: executions_claim, queues_pkey, workers_heartbeat
--
-- Of each lane the first `p_count` rows are looked at, and whose the first is says which workers count. A
-- paused queue is meant to wait.
create or replace function foliot.unserved(p_seconds float8, p_count integer, p_now timestamptz)
returns table (queue text, region text, requires text[], target_type text, handler text, waiting bigint,
               first_id uuid)
language plpgsql stable
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  since timestamptz := coalesce(p_now, statement_timestamp()) - make_interval(secs => p_seconds);
  is_staffed boolean := exists (select from foliot.workers w where w.status = 'ACTIVE' and w.capacity > 0);
begin
  return query
  with heads as materialized (
    select l.*, h.tenant_id, h.first_id
      from foliot.lanes l
     cross join lateral (
           select e.tenant_id, e.id as first_id from foliot.executions e
            where e.lane_id = l.id and e.worker_id is null and e.rank is not null
            order by e.rank limit 1) h
     where (select q.paused_at from foliot.queues q where q.name = l.queue) is null)
  select h.queue, h.region, h.requires, h.target_type, h.handler, c.waiting, h.first_id
    from heads h
   cross join lateral (
         select count(*) as waiting, min(e.queued_at) as oldest
           from (select e.queued_at from foliot.executions e
                  where e.lane_id = h.id and e.worker_id is null and e.rank is not null
                  order by e.rank limit p_count) e
          where not is_staffed or not foliot.is_served(h.id, h.tenant_id)) c
   where c.oldest <= since
   order by h.queue, h.id;
end
$$;
