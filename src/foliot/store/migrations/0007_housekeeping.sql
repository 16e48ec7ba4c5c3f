-- Ways to find what nobody needs any more, and what a change of a calendar is about. None of them grows
-- with the rows that fire and run: each holds only rows with a concurrency key or a calendar, or workers
-- that are dead.

-- Concurrency keys come and go with the requests that name them; the other limits stay. In the
-- collation "C" they are walked in one order on every server.
create index limits_dynamic on foliot.limits (key collate "C")
  where starts_with(key, 'key:');

-- Who names a key. There is one at the most, and it stands last.
create index executions_limit_key on foliot.executions ((limit_keys[cardinality(limit_keys)]))
  where limit_keys is not null;
create index jobs_limit_key on foliot.jobs ((limit_keys[cardinality(limit_keys)]))
  where limit_keys is not null and status <> 'DELETED';

-- The jobs that a calendar is for, by any version they ever had; written only when a job is edited.
create index job_versions_calendar
  on foliot.job_versions (tenant_id, (definition -> 'schedule' ->> 'calendar'), job_id)
  where definition -> 'schedule' ->> 'calendar' is not null;

create index workers_dead on foliot.workers (last_heartbeat_at)
  where status = 'DEAD';
