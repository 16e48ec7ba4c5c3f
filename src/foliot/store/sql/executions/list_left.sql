-- purpose: what workers have left behind that died lately, page by page: the facts that decide what becomes
--   of each
-- caller: store.rescuing
-- transition: none
-- fence: none
-- index: workers_dead, executions_worker, executions_pkey, job_versions_pkey
--
-- What a worker had begun it has said; what else it holds it claimed since about its last heartbeat. Further
-- back lie the dead entries of all that it has finished, and under a pinned snapshot they stay.
with dead as materialized (
  select w.id, w.started, w.last_heartbeat_at - interval '60 s' as low
    from foliot.workers w
   where w.status = 'DEAD' and w.id >= $1::uuid
     and w.last_heartbeat_at >= coalesce($4::timestamptz, statement_timestamp()) - interval '10 minutes'),
left_behind as materialized (
  select d.id as worker_id, h.id, h.id = any(d.started) as started
    from dead d
   cross join lateral (
         select e.id from foliot.executions e
          where e.worker_id = d.id and e.claimed_at >= d.low
          union
         select e.id from foliot.executions e
          where e.id = any(d.started) and e.worker_id is not distinct from d.id) h
   where d.id > $1::uuid or h.id > $2::uuid
   order by d.id, h.id limit $3::integer)
select e.id, e.fence, e.worker_id, e.claimed_at, e.attempt_number, e.crash_count, e.run_alone,
       e.cancel_requested_at, l.started,
       (select v.definition -> 'retry_policy' from foliot.job_versions v
         where v.job_id = e.job_id and v.version = e.job_version) as retry_policy
  from left_behind l
 cross join lateral (
       select e.* from foliot.executions e
        where e.id = l.id and e.worker_id is not distinct from l.worker_id offset 0) e
 order by e.worker_id, e.id;
