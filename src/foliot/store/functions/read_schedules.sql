-- purpose: every version that the schedules of some jobs have had, with the time it came into force and where
--   it found the job
-- caller: sql ledger/read_schedules
-- transition: none
-- fence: none
-- index: job_versions_pkey, calendar_versions_pkey
--
-- The calendar is the one that the version was planned by, not what it says by now.
create or replace function foliot.read_schedules(p_job_ids uuid[]) returns table (
  job_id uuid, version integer, schedule_version integer, valid_from timestamptz, last_instant timestamptz,
  fired_count bigint, counted_from timestamptz, schedule text, calendar text
)
language plpgsql stable rows 1000
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  return query
  select v.job_id, v.version, v.schedule_version, v.valid_from, v.last_instant, v.fired_count,
         coalesce((v.definition ->> 'counted_from')::timestamptz, v.valid_from),
         (v.definition -> 'schedule')::text, c.definition::text
    from unnest(p_job_ids) w(job_id)
   cross join lateral (
         select distinct on (v.schedule_version) v.* from foliot.job_versions v
          where v.job_id = w.job_id
          order by v.schedule_version, v.version) v
    left join lateral (
         select c.definition from foliot.calendar_versions c
          where c.tenant_id = v.tenant_id and c.version = v.calendar_version
            and c.name = v.definition -> 'schedule' ->> 'calendar' offset 0) c on true
   order by v.job_id, v.version;
end
$$;
