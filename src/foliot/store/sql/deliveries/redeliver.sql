-- purpose: deliver a completion callback again, from now on as if for the first time
-- caller: store.deliveries
-- transition: none
-- fence: leased_until
-- index: deliveries_pkey
--
-- One that somebody is delivering stays as it is: it is under way.
update foliot.deliveries d
   set next_attempt_at = m.moment, attempt_number = 0, redelivered_at = m.moment, delivered_at = null,
       given_up_at = null
  from (select coalesce($3::timestamptz, statement_timestamp()) as moment) m
 where d.id = $1::uuid and d.tenant_id = $2::uuid
   and (d.leased_until is null or d.leased_until <= m.moment);
