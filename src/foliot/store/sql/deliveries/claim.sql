-- purpose: take completion callbacks that are due, for a while
-- caller: store.deliveries
-- transition: none
-- fence: claim_number
-- index: deliveries_due, jobs_pkey, job_versions_pkey
select id, fence, tenant_id, status, claim_number, attempt_number, age_seconds, callback_url
  from foliot.claim_deliveries($1::integer, $2::float8, $3::float8, $4::timestamptz);
