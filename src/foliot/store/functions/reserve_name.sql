-- purpose: give a name to a job, unless another ACTIVE or PAUSED job of the tenant has it
-- caller: sql jobs/reserve_name
-- transition: none
-- fence: job_names_pkey
-- index: job_names_pkey, jobs_pkey
--
-- Who has the name is asked by a statement of its own, after the lock of the name was had: a job that was
-- over may have come back meanwhile, and it needs this lock to come back. A job that goes by another name
-- today has left this one.
create or replace function foliot.reserve_name(p_tenant_id uuid, p_name text, p_job_id uuid)
returns void
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  insert into foliot.job_names as n (tenant_id, name, job_id) values (p_tenant_id, p_name, p_job_id)
      on conflict (tenant_id, name) do update set name = n.name;
  if exists (select from foliot.job_names n
              cross join lateral (select from foliot.jobs j
                                   where j.id = n.job_id and j.name = n.name
                                     and j.status in ('ACTIVE', 'PAUSED') offset 0) j
              where n.tenant_id = p_tenant_id and n.name = p_name and n.job_id <> p_job_id) then
    raise unique_violation using constraint = 'job_names_pkey', message = 'the name is taken';
  end if;
  update foliot.job_names n set job_id = p_job_id
   where n.tenant_id = p_tenant_id and n.name = p_name and n.job_id <> p_job_id;
end
$$;
