-- purpose: a page of each job's scheduled executions that are not over, in the order of their instants
-- caller: store.ledger_rows
-- transition: none
-- fence: none
-- index: executions_job
select job_id, id, job_version, scheduled_time
  from foliot.read_live_fires($1::uuid[], $2::timestamptz[], $3::integer);
