-- purpose: take executions out of hands that let go of them (a dead worker, a dead child process, an
--   attempt past its time) and write what was decided about each
-- caller: sql executions/rescue
-- transition: execution LOSE: RUNNING -> QUEUED, execution FAIL: RUNNING -> FAILED,
--   execution TIME_OUT: RUNNING -> TIMED_OUT, execution CANCEL: RUNNING -> CANCELLED,
--   execution RETRY: RUNNING -> RETRYING, execution HAND_BACK: RUNNING -> QUEUED
-- fence: status, id, fence, worker_id
-- index: executions_pkey
--
-- What has been finished or claimed anew since it was listed is not what the caller saw, and what
-- another rescuer or its own worker holds at this moment is passed over. A crash count that is given
-- means that it had begun: next time it runs in a child process of its own. The worker is compared by
-- `is not distinct from`, which is no index condition: the key finds the row.
create or replace function foliot.rescue(
  p_ids uuid[], p_fences integer[], p_worker_ids uuid[], p_events text[], p_crash_counts integer[],
  p_errors text[], p_started_ats timestamptz[], p_delays float8[], p_dead_reasons text[],
  p_fingerprints text[], p_now timestamptz
) returns table (id uuid, status text)
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_custom_plan
as $$
declare
  lost bigint[];
  batch record;
begin
  lost := array(
    select t.n
      from unnest(p_ids, p_fences, p_worker_ids) with ordinality t(id, fence, worker_id, n)
     cross join lateral (
           select from foliot.executions e
            where e.id = t.id and e.status = 'RUNNING' and e.fence = t.fence
              and e.worker_id is not distinct from t.worker_id
              for update skip locked) e);
  update foliot.executions e
     set run_alone = true, start_by = null,
         crash_count = p_crash_counts[array_position(p_ids, e.id)]
   where e.id = any(array(select p_ids[l.n] from unnest(lost) l(n)
                           where p_crash_counts[l.n] is not null));
  for batch in
    select p_worker_ids[l.n] as worker_id, count(*)::integer as size,
           array_agg(p_ids[l.n] order by p_ids[l.n]) as ids,
           array_agg(p_fences[l.n] order by p_ids[l.n]) as fences,
           array_agg(p_events[l.n] order by p_ids[l.n]) as events,
           array_agg(p_errors[l.n] order by p_ids[l.n]) as errors,
           array_agg(p_started_ats[l.n] order by p_ids[l.n]) as started_ats,
           array_agg(p_delays[l.n] order by p_ids[l.n]) as delays,
           array_agg(p_dead_reasons[l.n] order by p_ids[l.n]) as dead_reasons,
           array_agg(p_fingerprints[l.n] order by p_ids[l.n]) as fingerprints
      from unnest(lost) l(n) group by 1
  loop
    return query
    select f.id, f.status
      from foliot.finish(
             batch.worker_id, batch.ids, batch.fences, batch.events,
             array_fill(null::text, array[batch.size]), array_fill(false, array[batch.size]),
             batch.errors, array_fill(null::text, array[batch.size]),
             batch.started_ats, batch.delays, batch.dead_reasons,
             batch.fingerprints, p_now) f;
  end loop;
end
$$;
