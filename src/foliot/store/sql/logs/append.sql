-- purpose: lines that attempts of one worker have said; a line that is there already stays as it is
-- caller: store.logs
-- transition: none
-- fence: id, fence, worker_id
-- index: executions_pkey, attempts_identity
--
-- For attempts that the worker holds or has just ended: handed back and not claimed again, or in the
-- history of the last hour, unless others wrote its end since its worker was lost. Lines of an attempt
-- that others have superseded are left out. The tenant is the execution's, whoever writes.
with lines as materialized (
  select * from unnest($2::uuid[], $3::integer[], $4::integer[], $5::integer[], $6::timestamptz[],
                       $7::text[], $8::text[], $9::text[])
    l(execution_id, fence, attempt_number, seq, at, level, source, message)),
owners as materialized (
  select x.execution_id, x.fence, coalesce(e.tenant_id, a.tenant_id) as tenant_id
    from (select distinct l.execution_id, l.fence from lines l) x
    left join lateral (
         select e.tenant_id from foliot.executions e
          where e.id = x.execution_id and e.fence = x.fence
            and (e.worker_id is not distinct from $1::uuid or e.worker_id is null) offset 0) e on true
    left join lateral (
         select a.tenant_id from foliot.attempts a
          where e.tenant_id is null and a.id = x.execution_id and a.fence = x.fence
            and a.worker_id = $1::uuid and a.error ->> 'type' is distinct from 'WORKER_LOST'
            and a.finished_at > coalesce($10::timestamptz, statement_timestamp())
                                - interval '1 hour'
          limit 1) a on true)
insert into foliot.execution_logs
       (execution_id, tenant_id, at, fence, attempt_number, seq, level, source, message)
select l.execution_id, o.tenant_id, l.at, l.fence, l.attempt_number, l.seq, l.level, l.source, l.message
  from lines l
  join owners o using (execution_id, fence)
 where o.tenant_id is not null
    on conflict do nothing;
