-- purpose: what a request for executions was answered, if it was carried out
-- caller: store.enqueuing
-- transition: none
-- fence: none
-- index: idempotency_keys_pkey
select string_to_array(k.answer ->> 'ids', ' ')::uuid[] as ids,
       string_to_array(k.answer ->> 'outcomes', ' ') as outcomes
  from foliot.idempotency_keys k
 where k.tenant_id = $1::uuid and k.route = $2::text and k.key = $3::text and k.answer is not null;
