-- purpose: how many executions of a tenant, or of one job, a list has in all
-- caller: store.execution_rows
-- transition: none
-- fence: none
-- index: executions_job, attempts_job
select sum(t.number)
  from (select count(*) as number from foliot.executions e
         where e.tenant_id = $1::uuid and ($2::uuid is null or e.job_id = $2)
           and ($3::text[] is null or e.status = any($3))
           and ($4::text[] is null or e.trigger = any($4))
           and ($5::text is null or e.queue = $5)
           and ($6::timestamptz is null or e.scheduled_time >= $6)
           and ($7::timestamptz is null or e.scheduled_time < $7)
           and ($8::uuid is null or e.worker_id = $8)
           and ($9::text[] is null or e.tags @> $9)
           and ($10::jsonb is null or e.labels @> $10)
           and ($11::text is null or e.trace_id = $11)
           and ($12::smallint is null or e.priority = $12)
           and ($13::uuid is null or e.dag_run_id = $13)
           and ($14::text is null or (
                select true from foliot.job_versions v
                 where v.job_id = e.job_id and v.version = e.job_version
                   and v.definition -> 'target' ->> 'type' = 'HANDLER'
                   and v.definition -> 'target' ->> 'name' = $14 limit 1))
           and ($15::text is null or e.status = 'RETRYING' and (
                select true from foliot.attempts a
                 where a.id = e.id and a.fence = e.fence and a.finished_at >= e.created_at - interval '1 day'
                   and strpos(lower(concat_ws(' ', a.error ->> 'type', a.error ->> 'message')),
                              lower($15)) > 0 limit 1))
           and ($16::boolean is null or (e.attempt_number > 1 or e.status = 'RETRYING') = $16)
           and ($17::float8 is null or e.status = 'RUNNING' and e.claimed_at
                <= coalesce($18::timestamptz, statement_timestamp()) - make_interval(secs => $17))
         union all
        select count(*) as number from foliot.attempts a
         where a.tenant_id = $1::uuid and ($2::uuid is null or a.job_id = $2) and a.final
           and ($3::text[] is null or a.status = any($3))
           and ($4::text[] is null or a.trigger = any($4))
           and ($5::text is null or a.queue = $5)
           and ($6::timestamptz is null or a.scheduled_time >= $6)
           and ($7::timestamptz is null or a.scheduled_time < $7)
           and ($8::uuid is null or a.worker_id = $8)
           and ($9::text[] is null or a.tags @> $9)
           and ($10::jsonb is null or a.labels @> $10)
           and ($11::text is null or a.trace_id = $11)
           and ($12::smallint is null or a.priority = $12)
           and ($13::uuid is null or a.dag_run_id = $13)
           and ($14::text is null or (
                select true from foliot.job_versions v
                 where v.job_id = a.job_id and v.version = a.job_version
                   and v.definition -> 'target' ->> 'type' = 'HANDLER'
                   and v.definition -> 'target' ->> 'name' = $14 limit 1))
           and ($15::text is null
                or strpos(lower(concat_ws(' ', a.error ->> 'type', a.error ->> 'message')), lower($15)) > 0)
           and ($16::boolean is null or (a.attempt_number > 1) = $16)
           and ($17::float8 is null or a.finished_at - a.started_at >= make_interval(secs => $17))) t;
