-- purpose: the jobs of these shards that are due from p_low up to and without p_high, soonest first, with all
--   that it takes to settle them
-- caller: sql jobs/stage_due
-- transition: none
-- fence: none
-- index: jobs_due, job_versions_pkey, calendars_pkey
--
-- Each shard is read from p_low on: below it lie the dead entries of what was fired, and walking over them
-- grows with every fire that a pinned snapshot keeps. Whoever stages looks without a bound (null) now and
-- then, for a job that came to stand below it.
create or replace function foliot.stage(
  p_shards smallint[], p_low timestamptz, p_high timestamptz, p_limit integer
) returns table (
  job_id uuid, tenant_id uuid, queue text, next_instant timestamptz, next_run_at timestamptz,
  schedule_version integer, fired_count bigint, counted_from timestamptz, schedule text, calendar text
)
language plpgsql stable rows 1000
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = auto
as $$
begin
  return query
  with due as materialized (
    select j.*
      from unnest(p_shards) s(shard)
     cross join lateral (
           select j.id, j.tenant_id, j.queue, j.next_instant, j.next_run_at, j.version, j.schedule_version,
                  j.fired_count, j.created_at
             from foliot.jobs j
            where j.shard = s.shard and j.status = 'ACTIVE' and j.next_run_at is not null
              and j.next_run_at >= coalesce(p_low, '-infinity') and j.next_run_at < p_high
            order by j.next_run_at limit p_limit) j
     order by j.next_run_at limit p_limit)
  select d.id, d.tenant_id, d.queue, d.next_instant, d.next_run_at, d.schedule_version, d.fired_count,
         coalesce((v.definition ->> 'counted_from')::timestamptz, d.created_at),
         (v.definition -> 'schedule')::text, c.definition::text
    from due d
   cross join lateral (select v.definition from foliot.job_versions v
                        where v.job_id = d.id and v.version = d.version offset 0) v
    left join lateral (select c.definition from foliot.calendars c
                        where c.tenant_id = d.tenant_id
                          and c.name = v.definition -> 'schedule' ->> 'calendar' offset 0) c on true
   order by d.next_run_at;
end
$$;
