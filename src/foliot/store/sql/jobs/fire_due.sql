-- purpose: fire a batch of due jobs; one row back for each job that was still as the caller saw it
-- caller: store.firing
-- transition: job EXHAUST: ACTIVE -> COMPLETED
-- fence: next_instant, schedule_version, status, queue
-- index: jobs_pkey
select job, fired, skipped
  from foliot.fire($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[], $5::integer[], $6::timestamptz[],
                   $7::timestamptz[], $8::timestamptz[], $9::bigint[], $10::integer[], $11::uuid[],
                   $12::timestamptz[], $13::timestamptz[], $14::integer[], $15::timestamptz[],
                   $16::timestamptz[], $17::bigint[], $18::text[], $19::boolean, $20::boolean,
                   $21::timestamptz);
