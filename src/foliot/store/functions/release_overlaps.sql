-- purpose: start the oldest execution that a job's overlap policy held, once nothing of the job is under way
-- caller: sql executions/release_overlaps
-- transition: execution RELEASE: WAITING -> QUEUED
-- fence: status, hold
-- index: executions_overlap, executions_job, jobs_pkey, executions_pkey
--
-- The job's row is locked before its executions are looked at, as a fire does, so that no two start one
-- each. A scheduled execution that waits for a slot or a breaker is under way too; only those held for
-- the same reason are not. Under ALLOW nothing stands in its way any more, and something always may be under
-- way: what an earlier policy held starts all the same. Jobs are walked by id, `p_jobs` a call; `last` is null at the end.
create or replace function foliot.release_overlaps(p_after uuid, p_jobs integer, p_now timestamptz)
returns table (released uuid[], last uuid)
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_custom_plan
as $$
declare
  job_ids uuid[] := '{}';
  ours uuid[];
  next_job uuid := p_after;
  moment timestamptz;
  ready tid[];
  limited tid[];
  limited_ids uuid[];
begin
  while cardinality(job_ids) < p_jobs loop
    next_job := (select e.job_id from foliot.executions e
                  where e.status = 'WAITING' and e.hold = 'OVERLAP'
                    and e.job_id > coalesce(next_job, '00000000-0000-0000-0000-000000000000')
                  order by e.job_id limit 1);
    exit when next_job is null;
    job_ids := job_ids || next_job;
  end loop;
  perform foliot.lock_flows(array_agg(e.queue), array_agg(e.tenant_id))
     from unnest(job_ids) x(job_id)
    cross join lateral (
          select e.queue, e.tenant_id from foliot.executions e
           where e.job_id = x.job_id and e.status = 'WAITING' and e.hold = 'OVERLAP'
           order by e.scheduled_time, e.id limit 1) e;
  ours := array(select j.id from foliot.jobs j where j.id = any(job_ids) order by j.id
                   for no key update skip locked);
  moment := coalesce(p_now, clock_timestamp());
  select array_agg(h.tid order by h.scheduled_time, h.id) filter (where not h.limited),
         array_agg(h.tid) filter (where h.limited), array_agg(h.id) filter (where h.limited)
    into ready, limited, limited_ids
    from unnest(ours) x(job_id)
   cross join lateral (
         select e.ctid as tid, e.id, e.scheduled_time, e.available_at, e.limit_keys is not null as limited
           from foliot.executions e
          where e.job_id = x.job_id and e.status = 'WAITING' and e.hold = 'OVERLAP'
          order by e.scheduled_time, e.id limit 1
            for no key update skip locked) h
   where h.available_at <= moment
     and ((select j.overlap_policy from foliot.jobs j where j.id = x.job_id) = 'ALLOW'
          or not exists (select from foliot.executions o
                          where o.job_id = x.job_id and o.trigger in ('SCHEDULE', 'AFTER')
                            and o.hold is distinct from 'OVERLAP'));
  update foliot.executions e set hold = 'LIMIT' where e.ctid = any(limited);
  return query
  select array(select foliot.queue_up(ready, moment)) || limited_ids, next_job;
end
$$;
