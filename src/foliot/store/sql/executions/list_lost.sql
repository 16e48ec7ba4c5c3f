-- purpose: what dead workers still hold, page by page: the facts that decide what becomes of each
-- caller: store.rescuing
-- transition: none
-- fence: none
-- index: executions_worker, workers_pkey, job_versions_pkey
--
-- A worker without a row is dead, and what it had begun is not known: all of it counts as begun. The
-- walk leaps from holder to holder, so that what the living hold costs one step each.
with recursive holders as (
  (select e.worker_id from foliot.executions e
    where e.worker_id >= $1::uuid order by e.worker_id limit 1)
   union all
  select (select e.worker_id from foliot.executions e
           where e.worker_id > h.worker_id order by e.worker_id limit 1)
    from holders h where h.worker_id is not null),
dead as materialized (
  select h.worker_id, w.started
    from holders h
    left join lateral (select w.status, w.started from foliot.workers w
                        where w.id = h.worker_id offset 0) w on true
   where h.worker_id is not null and (w.status is null or w.status = 'DEAD')
   order by h.worker_id limit $3::integer)
select e.id, e.fence, e.worker_id, e.claimed_at, e.attempt_number, e.crash_count, e.run_alone,
       e.cancel_requested_at, coalesce(e.id = any(d.started), true) as started,
       (select v.definition -> 'retry_policy' from foliot.job_versions v
         where v.job_id = e.job_id and v.version = e.job_version) as retry_policy
  from dead d
 cross join lateral (
       select e.* from foliot.executions e
        where e.worker_id = d.worker_id and (e.worker_id > $1::uuid or e.id > $2::uuid)
        order by e.id limit $3::integer) e
 order by e.worker_id, e.id limit $3::integer;
