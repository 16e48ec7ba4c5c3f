-- purpose: insert the executions that one request asks for, once, however often it is sent
-- caller: store.enqueuing
-- transition: none
-- fence: idempotency_keys_pkey, executions_unique_key, executions_pkey
-- index: idempotency_keys_pkey, jobs_pkey, executions_unique_key
select id, outcome, replayed
  from foliot.enqueue($1::uuid, $2::text, $3::text, $4::bytea, $5::uuid[], $6::uuid[], $7::text[],
                      $8::text[], $9::smallint[], $10::timestamptz[], $11::float8[], $12::timestamptz[],
                      $13::uuid[], $14::uuid[], $15::text[], $16::text[], $17::integer[], $18::text[],
                      $19::text[], $20::uuid[], $21::text[], $22::timestamptz);
