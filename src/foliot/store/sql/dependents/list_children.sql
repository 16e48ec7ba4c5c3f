-- purpose: the jobs that follow a job
-- caller: store.dependents
-- transition: none
-- fence: none
-- index: job_parents_pkey
select p.child_id from foliot.job_parents p where p.parent_id = $1::uuid order by p.child_id;
