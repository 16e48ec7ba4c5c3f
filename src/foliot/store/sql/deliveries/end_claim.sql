-- purpose: what became of a completion callback that was taken; no row if another has taken it since
-- caller: store.deliveries
-- transition: none
-- fence: id, fence, claim_number
-- index: deliveries_pkey
--
-- Without an entry for the log it was not tried, and no attempt is counted. Written as in the index of what
-- is due, the last condition would have all of that read too.
update foliot.deliveries d
   set leased_until = null,
       next_attempt_at = m.moment + make_interval(secs => $5::float8),
       delivered_at = case when $4::text = 'DELIVERED' then m.moment end,
       given_up_at = case when $4::text = 'GIVEN_UP' then m.moment end,
       attempt_number = d.attempt_number + case when $6::jsonb is null then 0 else 1 end,
       attempts = case when $6::jsonb is null then d.attempts
                       else jsonb_path_query_array(
                              jsonb_build_array($6::jsonb || jsonb_build_object('at', m.moment)) || d.attempts,
                              '$[0 to 19]') end
  from (select coalesce($7::timestamptz, statement_timestamp()) as moment) m
 where d.id = $1::uuid and d.fence = $2::integer and d.claim_number = $3::integer
   and coalesce(d.delivered_at, d.given_up_at) is null;
