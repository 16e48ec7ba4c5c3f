-- purpose: keep everybody else from firing or changing a job until the transaction ends
-- caller: store.job_settling
-- transition: none
-- fence: none
-- index: jobs_pkey
--
-- The row as it is when the turn has come is the one that is locked, and looked at once more.
select j.id
  from foliot.lock_turns(array[$1::uuid], false) t
 cross join foliot.jobs j
 where j.id = $1::uuid and j.tenant_id = $2::uuid and j.status <> 'DELETED'
   for no key update of j;
