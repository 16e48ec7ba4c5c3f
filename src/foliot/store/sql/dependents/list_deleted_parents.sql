-- purpose: the parents of a job that are deleted, by name
-- caller: store.dependents
-- transition: none
-- fence: none
-- index: job_parents_child, jobs_pkey
select j.name
  from foliot.job_parents p
 cross join lateral (select j.name from foliot.jobs j
                      where j.id = p.parent_id and j.status = 'DELETED' offset 0) j
 where p.child_id = $1::uuid
 order by j.name;
