-- purpose: fire a batch of due jobs; tells which were still as the caller saw them, by place, and their fires
-- caller: store.firing
-- transition: job EXHAUST: ACTIVE -> COMPLETED
-- fence: next_instant, schedule_version, status, queue
-- index: jobs_pkey
select jobs, fired
  from foliot.fire($1::text[], $2::uuid[], $3::uuid[], $4::text[], $5::timestamptz[], $6::integer[],
                   $7::timestamptz[], $8::timestamptz[], $9::timestamptz[], $10::bigint[], $11::integer[],
                   $12::timestamptz[], $13::integer[], $14::integer[], $15::uuid[], $16::timestamptz[],
                   $17::timestamptz[], $18::integer[], $19::timestamptz[], $20::timestamptz[], $21::bigint[],
                   $22::text[], $23::boolean, $24::boolean, $25::timestamptz, $26::timestamptz);
