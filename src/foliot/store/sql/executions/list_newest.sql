-- purpose: a page of a tenant's executions, live and finished, the newest first
-- caller: store.execution_rows
-- transition: none
-- fence: none
-- index: executions_pkey, attempts_identity
select id, finished_at
  from foliot.list_executions($1::uuid, $2::text[], $3::text[], $4::text, $5::timestamptz, $6::timestamptz,
                              $7::uuid, $8::text[], $9::jsonb, $10::text, $11::smallint, $12::uuid,
                              $13::uuid, $14::integer);
