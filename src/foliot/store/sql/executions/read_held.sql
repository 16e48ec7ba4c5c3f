-- purpose: an execution in somebody's hands, with what decides about a word that its called side has to say
-- caller: store.handing_over
-- transition: none
-- fence: none
-- index: executions_pkey, job_versions_pkey
--
-- Whether it is held is asked of the row that its key found: by statistics of an idle table, nothing is, and
-- it would be looked for among all that somebody holds.
select e.fence, e.worker_id, e.queue, e.attempt_number, e.claimed_at, e.cancel_requested_at,
       v.definition -> 'target' ->> 'type' as target_type,
       v.definition -> 'retry_policy' as retry_policy
  from (select e.* from foliot.executions e
         where e.id = $1::uuid and e.tenant_id = $2::uuid offset 0) e
  left join lateral (select v.definition from foliot.job_versions v
                      where v.job_id = e.job_id and v.version = e.job_version offset 0) v on true
 where e.worker_id is not null;
