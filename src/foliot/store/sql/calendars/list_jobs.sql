-- purpose: the jobs that any version ever gave this calendar, page by page, in the order of their ids
-- caller: store.calendars
-- transition: none
-- fence: none
-- index: job_versions_calendar
--
-- The walk leaps from job to job, however many versions one has had.
with recursive users as (
  (select v.job_id from foliot.job_versions v
    where v.tenant_id = $1::uuid and v.definition -> 'schedule' ->> 'calendar' = $2::text
      and v.definition -> 'schedule' ->> 'calendar' is not null and v.job_id > $3::uuid
    order by v.job_id limit 1)
   union all
  select (select v.job_id from foliot.job_versions v
           where v.tenant_id = $1::uuid and v.definition -> 'schedule' ->> 'calendar' = $2::text
             and v.definition -> 'schedule' ->> 'calendar' is not null and v.job_id > u.job_id
           order by v.job_id limit 1)
    from users u where u.job_id is not null)
select u.job_id from users u where u.job_id is not null limit $4::integer;
