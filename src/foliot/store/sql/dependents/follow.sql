-- purpose: fire jobs for the ends of their parents, or record why they do not
-- caller: store.completions
-- transition: none
-- fence: under the lock of the child
-- index: jobs_pkey, executions_job, job_parents_child
select child_id, outcome
  from foliot.follow($1::uuid[], $2::uuid[], $3::timestamptz[], $4::text[], $5::timestamptz);
