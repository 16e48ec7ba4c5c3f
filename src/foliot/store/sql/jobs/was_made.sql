-- purpose: whether a tenant ever had this job, deleted or not
-- caller: store.job_lists
-- transition: none
-- fence: none
-- index: job_versions_pkey
select exists (select from foliot.job_versions v where v.job_id = $1::uuid and v.tenant_id = $2::uuid);
