-- purpose: keep jobs from being deleted while another is made to follow them; those that are there
-- caller: store.dependents
-- transition: none
-- fence: none
-- index: jobs_pkey
select j.id
  from foliot.jobs j
 where j.id = any($1::uuid[]) and j.tenant_id = $2::uuid and j.status <> 'DELETED'
 order by j.id
   for share;
