-- purpose: let a job's concurrency limit, as it is now, count under the keys that its executions name; a job
--   without one has its executions give their keys up, a page at a time
-- caller: function apply_limit
-- transition: execution RELEASE: WAITING -> QUEUED
-- fence: rank is null, under the lock of each row
-- index: jobs_pkey, job_versions_pkey, executions_job, executions_pkey, limits_pkey
--
-- The job is not locked: whoever changes it meanwhile notes that, and it is walked over again. What holds a slot
-- keeps the key it is counted under; there are no more of these than the limit was, so they find room again.
-- A key belongs to all jobs that name it, so only the rows of this one lose it. What waited for nothing else
-- is ranked at once, the oldest first, flows before rows; who has other limits waits on for those. `last` is
-- null unless there is more to do at once, `passed_over` tells that others had rows in use.
create or replace function foliot.apply_key_limit(p_job_id uuid, p_batch integer, p_now timestamptz)
returns table (changed bigint, last uuid, passed_over boolean, queues text[])
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_custom_plan
as $$
declare
  most integer;
  tenant uuid;
  keys text[];
  page uuid[];
  ready tid[];
begin
  changed := 0;
  passed_over := false;
  select j.tenant_id, (v.definition -> 'concurrency' ->> 'limit')::integer into tenant, most
    from foliot.jobs j
   cross join lateral (select v.definition from foliot.job_versions v
                        where v.job_id = j.id and v.version = j.version offset 0) v
   where j.id = p_job_id and j.status <> 'DELETED';
  if not found then
    return next;
    return;
  end if;

  if most is not null then
    keys := array(
      select k.key
        from (select distinct foliot.concurrency_key(e.limit_keys) as key
                from foliot.executions e where e.job_id = p_job_id) k
       where k.key is not null
         and not exists (select from foliot.limits l where l.key = k.key and l.max_running = most)
       order by k.key limit p_batch);
    perform foliot.name_limits(keys, array_fill(most, array[cardinality(keys)]));
    changed := cardinality(keys);
    last := case when changed = p_batch then p_job_id end;
    return next;
    return;
  end if;

  page := array(
    select e.id from foliot.executions e
     where e.job_id = p_job_id and e.rank is null and foliot.concurrency_key(e.limit_keys) is not null
     order by e.scheduled_time, e.id limit p_batch);
  queues := array(
    select distinct e.queue from foliot.executions e
     where e.id = any(page) and e.hold is not distinct from 'LIMIT' and cardinality(e.limit_keys) = 1);
  perform foliot.lock_flows(queues, array_fill(tenant, array[cardinality(queues)]));
  with freed as (
    update foliot.executions e
       set limit_keys = case when cardinality(e.limit_keys) > 1 then trim_array(e.limit_keys, 1) end
     where e.ctid = any(array(
             select o.ctid from foliot.executions o
              where o.id = any(page) and num_nulls(o.rank) = 1
                and foliot.concurrency_key(o.limit_keys) is not null
                and (o.hold is distinct from 'LIMIT' or cardinality(o.limit_keys) > 1
                     or o.queue = any(queues))
                for no key update skip locked))
    returning e.ctid as tid, e.id, e.scheduled_time, e.hold, e.limit_keys)
  select count(*), array_agg(f.tid order by f.scheduled_time, f.id)
                     filter (where f.hold = 'LIMIT' and f.limit_keys is null)
    into changed, ready from freed f;
  perform foliot.queue_up(ready, coalesce(p_now, clock_timestamp()));

  if changed > 0 and cardinality(page) = p_batch then
    last := p_job_id;
  else
    passed_over := exists (
      select from foliot.executions e
       where e.job_id = p_job_id and e.rank is null and foliot.concurrency_key(e.limit_keys) is not null);
  end if;
  return next;
end
$$;
