-- purpose: start the oldest execution that a job's overlap policy held, once nothing of the job is under way
-- caller: sql executions/release_overlaps
-- transition: execution RELEASE: WAITING -> QUEUED
-- fence: status, hold
-- index: executions_overlap, executions_job, jobs_pkey, executions_pkey
--
-- The job's row is locked before its executions are looked at, as a fire does, so that no two start one
-- each. A scheduled execution that waits for a slot or a breaker is under way too; only those held for
-- the same reason are not. Jobs are walked by id, `p_jobs` a call; `last` is null at the end.
create or replace function foliot.release_overlaps(p_after uuid, p_jobs integer, p_now timestamptz)
returns table (released uuid[], last uuid)
language plpgsql
set enable_seqscan = off
as $$
declare
  job_ids uuid[] := '{}';
  ours uuid[];
  next_job uuid := p_after;
  moment timestamptz;
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
  return query
  with heads as materialized (
    select h.tid, h.queue, h.lane_id, h.tenant_id, h.priority, h.limited,
           row_number() over (partition by h.limited order by h.scheduled_time, h.id) as ordinal
      from unnest(ours) x(job_id)
     cross join lateral (
           select e.ctid as tid, e.id, e.queue, e.lane_id, e.tenant_id, e.priority, e.scheduled_time,
                  e.available_at, e.limit_keys is not null as limited
             from foliot.executions e
            where e.job_id = x.job_id and e.status = 'WAITING' and e.hold = 'OVERLAP'
            order by e.scheduled_time, e.id limit 1
              for no key update skip locked) h
     where h.available_at <= moment
       and not exists (select from foliot.executions o
                        where o.job_id = x.job_id and o.trigger in ('SCHEDULE', 'AFTER')
                          and o.hold is distinct from 'OVERLAP')),
  ready as materialized (
    select h.* from heads h where not h.limited),
  ranks as materialized (
    select r.tid, a.rank
      from foliot.assign_ranks(array(select r.queue from ready r order by r.ordinal),
                               array(select r.lane_id from ready r order by r.ordinal),
                               array(select r.tenant_id from ready r order by r.ordinal),
                               array(select r.priority from ready r order by r.ordinal)) a
      join ready r on r.ordinal = a.n),
  queued as (
    update foliot.executions e
       set status = 'QUEUED', hold = null, rank = r.rank, queued_at = moment
      from ranks r
     where e.ctid = r.tid
    returning e.id),
  parked as (
    update foliot.executions e
       set hold = 'LIMIT'
     where e.ctid = any(array(select h.tid from heads h where h.limited))
    returning e.id)
  select array(select q.id from queued q union all select p.id from parked p), next_job;
end
$$;
