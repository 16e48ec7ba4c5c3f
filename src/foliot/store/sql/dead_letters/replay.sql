-- purpose: run dead letters again, each once; no row comes back if one of them is closed by now
-- caller: store.replaying
-- transition: none
-- fence: replayed_at is null, discarded_at is null
-- index: dead_letters_pkey, jobs_pkey, executions_pkey
select dead_letter_id, execution_id
  from foliot.replay($1::uuid, $2::uuid[], $3::timestamptz[], $4::text, $5::uuid[], $6::uuid[], $7::text[],
                     $8::text[], $9::smallint[], $10::timestamptz[], $11::float8[], $12::timestamptz[],
                     $13::uuid[], $14::uuid[], $15::text[], $16::text[], $17::integer[], $18::text[],
                     $19::text[], $20::uuid[], $21::text[], $22::timestamptz);
