-- purpose: what a worker needs to run what it claimed, read after the claim and without a lock
-- caller: store.claiming
-- transition: none
-- fence: id, fence, worker_id
-- index: executions_pkey, job_versions_pkey, job_parents_pkey
--
-- Definition and payload as text: a herd shares them, so each is parsed once; and written out once, within
-- the lookup whose answers the server remembers. `is not distinct from` is no index condition: the key finds
-- the row, not a walk over all that the worker holds.
select e.id, e.fence, e.tenant_id, e.job_id, e.job_name, e.tags, e.labels, e.trigger, e.queue,
       e.scheduled_time, e.available_at, e.claimed_at, e.attempt_number, e.crash_count, e.run_alone,
       e.cancel_requested_at, e.idempotency_key, e.trace_id, v.definition,
       coalesce(e.payload::text, v.payload) as payload, e.payload is null as payload_is_jobs,
       e.limit_keys is not null as limited,
       p.parent_id is not null as followed
  from unnest($2::uuid[], $3::integer[]) x(id, fence)
 cross join lateral (select e.* from foliot.executions e
                      where e.id = x.id and e.fence = x.fence
                        and e.worker_id is not distinct from $1::uuid
                     offset 0) e
  left join lateral (select v.definition::text as definition, v.payload::text as payload
                       from foliot.job_versions v
                      where v.job_id = e.job_id and v.version = e.job_version
                     offset 0) v on true
  left join lateral (select p.parent_id from foliot.job_parents p
                      where p.parent_id = e.job_id limit 1) p on true;
