-- purpose: a page of the jobs whose ledger can be checked, deleted ones too, with where each stands
-- caller: sql ledger/list_jobs
-- transition: none
-- fence: none
-- index: jobs_pkey, job_versions_first, job_versions_pkey
--
-- One job; or those of one tenant, the oldest first; or all there are, in the order of their ids. A page begins
-- after the job p_after.
create or replace function foliot.list_kept_jobs(
  p_tenant_id uuid, p_job_id uuid, p_after uuid, p_limit integer
) returns table (
  job_id uuid, tenant_id uuid, name text, status text, version integer, next_instant timestamptz,
  next_run_at timestamptz, last_instant timestamptz, fired_count bigint, updated_at timestamptz
)
language plpgsql stable rows 100
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  if p_job_id is not null then
    return query
    select j.id, j.tenant_id, j.name, j.status, j.version, j.next_instant, j.next_run_at, j.last_instant,
           j.fired_count, j.updated_at
      from foliot.jobs j
     where j.id = p_job_id and (p_tenant_id is null or j.tenant_id = p_tenant_id)
       and j.id > coalesce(p_after, '00000000-0000-0000-0000-000000000000');
  elsif p_tenant_id is null then
    return query
    select j.id, j.tenant_id, j.name, j.status, j.version, j.next_instant, j.next_run_at, j.last_instant,
           j.fired_count, j.updated_at
      from foliot.jobs j
     where j.id > coalesce(p_after, '00000000-0000-0000-0000-000000000000')
     order by j.id limit p_limit;
  else
    return query
    with first as materialized (
      select f.job_id, f.valid_from from foliot.job_versions f
       where f.tenant_id = p_tenant_id and f.version = 1
         and (f.valid_from, f.job_id) > (
             coalesce((select v.valid_from from foliot.job_versions v
                        where v.job_id = p_after and v.version = 1), '-infinity'),
             coalesce(p_after, '00000000-0000-0000-0000-000000000000'))
       order by f.valid_from, f.job_id limit p_limit)
    select j.id, j.tenant_id, j.name, j.status, j.version, j.next_instant, j.next_run_at, j.last_instant,
           j.fired_count, j.updated_at
      from first f
     cross join lateral (select j.* from foliot.jobs j
                          where j.id = f.job_id and j.tenant_id = p_tenant_id offset 0) j
     order by f.valid_from, f.job_id;
  end if;
end
$$;
