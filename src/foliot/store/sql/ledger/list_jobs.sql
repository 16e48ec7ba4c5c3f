-- purpose: a page of the jobs whose ledger can be checked, deleted ones too, with where each stands
-- caller: store.ledger_rows
-- transition: none
-- fence: none
-- index: jobs_pkey, job_versions_first
select job_id, tenant_id, name, status, version, next_instant, next_run_at, last_instant, fired_count, updated_at
  from foliot.list_kept_jobs($1::uuid, $2::uuid, $3::uuid, $4::integer);
