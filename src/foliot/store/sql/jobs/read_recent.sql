-- purpose: how the last finished executions of each of these jobs went, the newest first
-- caller: store.job_lists
-- transition: none
-- fence: none
-- index: attempts_job
select x.job_id, a.id, a.status, a.scheduled_time, a.started_at, a.finished_at
  from unnest($2::uuid[]) x(job_id)
 cross join lateral (
       select a.id, a.status, a.scheduled_time, coalesce(a.started_at, a.claimed_at) as started_at,
              a.finished_at
         from foliot.attempts a
        where a.job_id = x.job_id and a.tenant_id = $1::uuid and a.final
        order by a.finished_at desc limit $3::integer) a
 order by x.job_id, a.finished_at desc;
