-- purpose: the jobs of some shards that are due in a stretch of time, with what it takes to settle them
-- caller: store.staging
-- transition: none
-- fence: none
-- index: jobs_due
select job_id, tenant_id, queue, next_instant, next_run_at, schedule_version, fired_count, counted_from,
       schedule, calendar
  from foliot.stage($1::smallint[], $2::timestamptz, $3::timestamptz, $4::integer);
