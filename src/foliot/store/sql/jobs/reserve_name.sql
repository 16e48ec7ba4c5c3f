-- purpose: the job has its name from now on; unique_violation if another one that is not over has it
-- caller: store.jobs
-- transition: none
-- fence: job_names_pkey
-- index: job_names_pkey
select foliot.reserve_name($1::uuid, $2::text, $3::uuid);
