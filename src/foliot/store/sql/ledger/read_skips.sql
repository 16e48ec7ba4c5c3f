-- purpose: a page of each job's skip records, in the order of their instants
-- caller: store.ledger_rows
-- transition: none
-- fence: none
-- index: skips_pkey
select job_id, schedule_version, from_instant, to_instant, count, reason
  from foliot.read_skips($1::uuid[], $2::timestamptz[], $3::timestamptz, $4::integer);
