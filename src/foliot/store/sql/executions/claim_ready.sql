-- purpose: a worker takes its next executions; ids, fences and ranks only, payloads are read afterwards
-- caller: store.claiming
-- transition: execution CLAIM: QUEUED -> RUNNING
-- fence: worker_id is null, rank is not null
-- index: executions_claim
select id, fence, rank
  from foliot.claim($1::uuid, $2::text, $3::integer[], $4::integer, $5::float8, $6::timestamptz);
