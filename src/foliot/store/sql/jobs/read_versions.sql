-- purpose: every version of a job with the time it came into force, oldest first
-- caller: store.job_rows
-- transition: none
-- fence: none
-- index: job_versions_pkey
select v.job_id, v.tenant_id, v.version, v.schedule_version, v.status, v.definition, v.payload, v.changed_by,
       v.note, v.valid_from
  from foliot.job_versions v
 where v.job_id = $1::uuid and v.tenant_id = $2::uuid
 order by v.version;
