-- purpose: executions go from a worker's hands into those of whom it called
-- caller: sql executions/hand_over
-- transition: execution HAND_OVER: RUNNING -> RUNNING
-- fence: id, fence, worker_id
-- index: executions_pkey
--
-- They keep their ranks, so their slots stay taken, and the time of their claim, from which their timeouts
-- count. What was handed over before is returned again: a call whose commit is unknown is simply repeated.
-- The rows are locked by a statement of their own, in the order given, like those of `finish`.
create or replace function foliot.hand_over(
  p_worker_id uuid, p_remote_id uuid, p_ids uuid[], p_fences integer[]
) returns setof uuid
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_custom_plan
as $$
begin
  perform from unnest(p_ids) t(id)
    cross join lateral (select from foliot.executions e where e.id = t.id for update) e;
  return query
  update foliot.executions e set worker_id = p_remote_id
   where e.ctid = any(array(
         select x.tid
           from unnest(p_ids, p_fences) t(id, fence)
          cross join lateral (
                select e.ctid as tid from foliot.executions e
                 where e.id = t.id and e.fence = t.fence
                   and (e.worker_id is not distinct from p_worker_id
                        or e.worker_id is not distinct from p_remote_id) offset 0) x))
  returning e.id;
end
$$;
