-- purpose: forget completion callbacks of long ago that were delivered or given up
-- caller: store.forgetting
-- transition: none
-- fence: delivered_at, given_up_at
-- index: deliveries_age
with old as materialized (
  select d.ctid as tid from foliot.deliveries d
   where d.created_at < coalesce($1::timestamptz, statement_timestamp()) - interval '30 days'
     and (d.delivered_at is not null or d.given_up_at is not null)
   order by d.created_at limit $2::integer
     for update skip locked)
delete from foliot.deliveries d
 where d.ctid = any(array(select o.tid from old o));
