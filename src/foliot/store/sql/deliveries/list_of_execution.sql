-- purpose: the completion callbacks of an execution, the newest first
-- caller: store.deliveries
-- transition: none
-- fence: none
-- index: deliveries_pkey
select d.id, d.fence, d.status, d.created_at, d.next_attempt_at, d.attempt_number, d.redelivered_at,
       d.delivered_at, d.given_up_at, d.attempts
  from foliot.deliveries d
 where d.id = $1::uuid and d.tenant_id = $2::uuid
 order by d.fence desc;
