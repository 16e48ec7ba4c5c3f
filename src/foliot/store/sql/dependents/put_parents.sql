-- purpose: the parents that a job follows from now on; what is told about those that stay is kept
-- caller: store.dependents
-- transition: none
-- fence: under the lock of the job
-- index: job_parents_child, job_parents_pkey, completions_pair
--
-- A parent that was taken away and comes again begins with its next end.
with gone as (
  delete from foliot.job_parents p
   where p.child_id = $1::uuid and p.parent_id <> all($3::uuid[]))
insert into foliot.job_parents (parent_id, child_id, tenant_id, needs_success, last_number)
select x.parent_id, $1::uuid, $2::uuid, $4::boolean,
       coalesce((select c.number from foliot.completions c
                  where c.child_id = $1::uuid and c.parent_id = x.parent_id
                  order by c.number desc limit 1), 0)
  from unnest($3::uuid[]) x(parent_id) order by x.parent_id
    on conflict (parent_id, child_id) do update set needs_success = excluded.needs_success;
