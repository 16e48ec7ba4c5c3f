-- purpose: the instants that a paused job has missed, before its schedule changes or it is deleted
-- caller: store.job_settling
-- transition: none
-- fence: status, under the lock of the job
-- index: jobs_pkey
with settled as (
  update foliot.jobs j
     set last_instant = greatest(j.last_instant, $2::timestamptz)
   where j.id = $1::uuid and j.status = 'PAUSED'
  returning j.id, j.tenant_id, j.schedule_version)
insert into foliot.skips
       (job_id, tenant_id, schedule_version, from_instant, to_instant, count, reason, recorded_at)
select s.id, s.tenant_id, s.schedule_version, k.from_instant, k.to_instant, k.count, k.reason,
       $7::timestamptz
  from settled s
 cross join unnest($3::timestamptz[], $4::timestamptz[], $5::bigint[], $6::text[])
            k(from_instant, to_instant, count, reason);
