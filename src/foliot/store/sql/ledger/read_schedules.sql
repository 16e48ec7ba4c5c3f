-- purpose: every version that the schedules of some jobs have had, with the time it came into force and where
--   it found the job
-- caller: store.ledger_rows
-- transition: none
-- fence: none
-- index: job_versions_pkey
select job_id, version, schedule_version, valid_from, last_instant, fired_count, counted_from, schedule, calendar
  from foliot.read_schedules($1::uuid[]);
