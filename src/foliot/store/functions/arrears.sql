-- purpose: how long the oldest of what should have been done by now has waited: an instant that is due, a
--   worker that is silent and not buried, a callback that is not delivered
-- caller: sql schema/read_arrears
-- transition: none
-- fence: none
-- index: jobs_due, workers_heartbeat, deliveries_due
--
-- `p_except` are jobs that cannot be fired, for those who know them. Who does not know them gives a window:
-- while a scheduler lives, what has been due for longer than that is no sign that nobody fires.
create or replace function foliot.arrears(
  p_except uuid[], p_window_seconds float8, p_lease_seconds float8, p_expiry_seconds float8,
  p_now timestamptz
) returns table (instant_seconds float8, lease_seconds float8, callback_seconds float8)
language plpgsql stable
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  moment timestamptz := coalesce(p_now, statement_timestamp());
  since timestamptz := '-infinity';
begin
  if p_window_seconds is not null
     and exists (select from foliot.schedulers s
                  where s.last_seen_at > moment - make_interval(secs => p_lease_seconds)) then
    since := moment - make_interval(secs => p_window_seconds);
  end if;
  return query
  select extract(epoch from moment - (
           select min(d.next_run_at)
             from generate_series(0, 63) n(shard)
            cross join lateral (
                  select j.next_run_at from foliot.jobs j
                   where j.shard = n.shard and j.status = 'ACTIVE' and j.next_run_at is not null
                     and j.next_run_at >= since and j.id <> all(p_except)
                   order by j.next_run_at limit 1) d))::float8,
         extract(epoch from moment - (
           select w.last_heartbeat_at from foliot.workers w
            where w.status <> 'DEAD' and w.last_heartbeat_at < moment
            order by w.last_heartbeat_at limit 1))::float8 - p_expiry_seconds,
         extract(epoch from moment - (
           select d.next_attempt_at from foliot.deliveries d
            where d.delivered_at is null and d.given_up_at is null order by d.next_attempt_at limit 1))::float8;
end
$$;
