-- purpose: a page of a job's executions, live and finished, the newest first
-- caller: store.execution_rows
-- transition: none
-- fence: none
-- index: executions_job, attempts_job, job_versions_pkey
select id, finished_at
  from foliot.list_job_executions($1::uuid, $2::uuid, $3::text[], $4::text[], $5::text, $6::timestamptz,
                                  $7::timestamptz, $8::uuid, $9::text[], $10::jsonb, $11::text,
                                  $12::smallint, $13::uuid, $14::text, $15::text, $16::boolean, $17::float8,
                                  $18::uuid, $19::integer, $20::timestamptz);
