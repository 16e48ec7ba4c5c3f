-- purpose: a page of a tenant's executions, live and finished, the newest first; and where the looking ended
-- caller: store.execution_rows
-- transition: none
-- fence: none
-- index: executions_pkey, attempts_identity, job_versions_pkey
select id, finished_at, low
  from foliot.list_executions($1::uuid, $2::text[], $3::text[], $4::text, $5::timestamptz, $6::timestamptz,
                              $7::uuid, $8::text[], $9::jsonb, $10::text, $11::smallint, $12::uuid,
                              $13::text, $14::text, $15::boolean, $16::float8, $17::uuid, $18::integer,
                              $19::integer, $20::timestamptz);
