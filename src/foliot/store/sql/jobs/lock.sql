-- purpose: keep everybody else from firing or changing a job until the transaction ends
-- caller: store.job_settling
-- transition: none
-- fence: none
-- index: jobs_pkey
select j.id
  from foliot.jobs j
 where j.id = $1::uuid and j.tenant_id = $2::uuid and j.status <> 'DELETED'
   for no key update;
