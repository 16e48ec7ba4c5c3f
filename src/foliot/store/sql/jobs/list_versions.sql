-- purpose: a page of the versions of a job, the newest first, also of a deleted one
-- caller: store.job_lists
-- transition: none
-- fence: none
-- index: job_versions_pkey
select v.job_id, v.tenant_id, v.version, v.schedule_version, v.status, v.definition, v.payload, v.changed_by,
       v.note, v.valid_from
  from foliot.job_versions v
 where v.job_id = $1::uuid and v.tenant_id = $2::uuid and v.version < coalesce($3::integer, 2147483647)
 order by v.version desc
 limit $4::integer;
