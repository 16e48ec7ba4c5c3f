-- purpose: whom some jobs follow, and whom those follow, to the beginning: pairs with their names
-- caller: store.dependents
-- transition: none
-- fence: none
-- index: job_parents_child, jobs_pkey
with recursive upward as (
  select unnest($1::uuid[]) as id
   union
  select p.parent_id
    from upward u
   cross join lateral (select p.parent_id from foliot.job_parents p where p.child_id = u.id offset 0) p)
select u.id as child_id, j.name, array(select p.parent_id from foliot.job_parents p
                                        where p.child_id = u.id) as parent_ids
  from upward u
 cross join lateral (select j.name from foliot.jobs j where j.id = u.id offset 0) j;
