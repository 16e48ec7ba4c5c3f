-- purpose: cancel executions of a tenant: end what waits, ask what runs to stop
-- caller: store.cancelling
-- transition: execution CANCEL: PENDING -> CANCELLED, execution CANCEL: WAITING -> CANCELLED,
--   execution CANCEL: QUEUED -> CANCELLED, execution CANCEL: RETRYING -> CANCELLED
-- fence: tenant_id, worker_id is null
-- index: executions_pkey
select id, status
  from foliot.cancel(
         array(select e.id from unnest($2::uuid[]) x(id)
                cross join lateral (select e.id from foliot.executions e
                                     where e.id = x.id and e.tenant_id = $1::uuid offset 0) e
                order by e.id),
         $3::jsonb, coalesce($4::timestamptz, statement_timestamp()));
