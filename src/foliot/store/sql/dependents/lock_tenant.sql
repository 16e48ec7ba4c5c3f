-- purpose: let nobody else change which of a tenant's jobs follow which until the transaction ends
-- caller: store.dependents
-- transition: none
-- fence: none
-- index: job_parents_pkey
select foliot.lock_dependents($1::uuid, $2::uuid);
