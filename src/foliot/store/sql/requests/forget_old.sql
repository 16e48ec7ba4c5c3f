-- purpose: forget what requests were answered more than a day ago
-- caller: store.forgetting
-- transition: none
-- fence: created_at
-- index: idempotency_keys_age
with old as materialized (
  select k.ctid as tid from foliot.idempotency_keys k
   where k.created_at < coalesce($1::timestamptz, statement_timestamp()) - interval '24 hours'
   order by k.created_at limit $2::integer
     for update skip locked)
delete from foliot.idempotency_keys k
 where k.ctid = any(array(select o.tid from old o));
