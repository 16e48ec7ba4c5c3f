-- purpose: a scheduler lives and keeps the shards it holds; tells those that are still its own
-- caller: sql shards/renew
-- transition: none
-- fence: owner, epoch
-- index: schedulers_pkey, shard_leases_pkey
--
-- A lease that ran out and that nobody took is renewed as well: after an outage everyone keeps what they had.
-- The rows are locked in the order of the shards, so that nodes which renew, take and give at once never wait
-- for each other in a circle, and the time is read after that wait. Epochs tell a lease that went to another
-- owner and came back from the one that was held.
create or replace function foliot.renew_shards(
  p_id uuid, p_host text, p_version text, p_shards smallint[], p_epochs bigint[], p_lease_seconds float8,
  p_now timestamptz
) returns table (moment timestamptz, shards smallint[])
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  perform from foliot.shard_leases l where l.shard = any(p_shards) order by l.shard for no key update;
  moment := coalesce(p_now, clock_timestamp());
  insert into foliot.schedulers as s (id, host, version, started_at, last_seen_at)
  values (p_id, p_host, p_version, moment, moment)
      on conflict (id) do update set last_seen_at = greatest(s.last_seen_at, excluded.last_seen_at);
  with renewed as (
    update foliot.shard_leases l
       set expires_at = greatest(l.expires_at, moment + make_interval(secs => p_lease_seconds))
     where l.shard = any(p_shards) and l.owner = p_id
       and l.epoch = p_epochs[array_position(p_shards, l.shard)]
    returning l.shard)
  select coalesce(array_agg(r.shard order by r.shard), '{}') into shards from renewed r;
  return next;
end
$$;
