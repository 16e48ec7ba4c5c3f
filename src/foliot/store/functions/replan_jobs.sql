-- purpose: the next instants of jobs whose calendar has changed, each in a new version
-- caller: sql calendars/replan_jobs
-- transition: job EXHAUST: ACTIVE -> COMPLETED
-- fence: under the locks of the jobs
-- index: jobs_pkey, job_versions_pkey, calendars_pkey
--
-- The version of the schedule rises though its words stay: what a scheduler has staged was planned by the
-- old calendar and must not fire. One that is paused stays so until somebody lets it go on.
create or replace function foliot.replan_jobs(
  p_ids uuid[], p_next_instants timestamptz[], p_next_run_ats timestamptz[], p_alive boolean[],
  p_changed_by text, p_note text, p_moment timestamptz
) returns void
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  with changed as (
    update foliot.jobs j
       set version = j.version + 1, schedule_version = j.schedule_version + 1, updated_at = p_moment,
           next_instant = p_next_instants[array_position(p_ids, j.id)],
           next_run_at = p_next_run_ats[array_position(p_ids, j.id)],
           status = case when j.status = 'ACTIVE' and not p_alive[array_position(p_ids, j.id)]
                         then 'COMPLETED' else j.status end
     where j.id = any(p_ids)
    returning j.*)
  insert into foliot.job_versions
         (job_id, tenant_id, version, schedule_version, status, definition, payload, changed_by, note,
          valid_from, last_instant, fired_count, calendar_version)
  select c.id, c.tenant_id, c.version, c.schedule_version, c.status, v.definition, v.payload, p_changed_by,
         p_note, p_moment, c.last_instant, c.fired_count,
         (select k.version from foliot.calendars k
           where k.tenant_id = c.tenant_id and k.name = v.definition -> 'schedule' ->> 'calendar')
    from changed c
   cross join lateral (select v.definition, v.payload from foliot.job_versions v
                        where v.job_id = c.id and v.version = c.version - 1 offset 0) v;
end
$$;
