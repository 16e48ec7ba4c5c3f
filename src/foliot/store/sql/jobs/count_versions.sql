-- purpose: how many versions a job has had
-- caller: store.job_lists
-- transition: none
-- fence: none
-- index: job_versions_pkey
select count(*) from foliot.job_versions v where v.job_id = $1::uuid and v.tenant_id = $2::uuid;
