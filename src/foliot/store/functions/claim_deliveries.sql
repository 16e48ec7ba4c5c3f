-- purpose: take completion callbacks that are due, for a while, and say where they go
-- caller: sql deliveries/claim
-- transition: none
-- fence: claim_number
-- index: deliveries_due, jobs_pkey, job_versions_pkey
--
-- Who takes one has until the end of the lease: then it is due again, whatever became of its taker. With a
-- window only what has become due within it is looked at: below lie the dead entries of what was delivered.
create or replace function foliot.claim_deliveries(
  p_limit integer, p_lease_seconds float8, p_window_seconds float8, p_now timestamptz
) returns table (id uuid, fence integer, tenant_id uuid, status text, claim_number integer,
                 attempt_number integer, age_seconds float8, callback_url text)
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  moment timestamptz := coalesce(p_now, statement_timestamp());
  since timestamptz := coalesce(moment - make_interval(secs => p_window_seconds), '-infinity');
  lease_end timestamptz := moment + make_interval(secs => p_lease_seconds);
begin
  return query
  with due as materialized (
    select d.ctid as tid from foliot.deliveries d
     where d.next_attempt_at >= since and d.next_attempt_at <= moment
       and d.delivered_at is null and d.given_up_at is null
     order by d.next_attempt_at limit p_limit
       for update skip locked),
  taken as (
    update foliot.deliveries d
       set claim_number = d.claim_number + 1, leased_until = lease_end, next_attempt_at = lease_end
     where d.ctid = any(array(select x.tid from due x))
    returning d.*)
  select t.id, t.fence, t.tenant_id, t.status, t.claim_number, t.attempt_number,
         extract(epoch from moment - coalesce(t.redelivered_at, t.created_at))::float8, u.callback_url
    from taken t
    left join lateral (
         select v.definition ->> 'callback_url' as callback_url
           from foliot.jobs j
           join foliot.job_versions v on v.job_id = j.id and v.version = j.version
          where j.id = t.job_id
         offset 0) u on true;
end
$$;
