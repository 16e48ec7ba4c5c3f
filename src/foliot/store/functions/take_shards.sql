-- purpose: a scheduler takes shards that are free or whose lease has run out; tells those it got
-- caller: sql shards/take
-- transition: none
-- fence: epoch, expires_at
-- index: shard_leases_pkey
--
-- The epoch rises with the owner. Whoever comes second finds another epoch than the one it has seen. A lease
-- that somebody has locked is being renewed, taken or given: it is not waited for.
create or replace function foliot.take_shards(
  p_id uuid, p_shards smallint[], p_epochs bigint[], p_lease_seconds float8, p_now timestamptz
) returns setof smallint
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  moment timestamptz := coalesce(p_now, clock_timestamp());
begin
  return query
  with free as materialized (
    select l.shard from foliot.shard_leases l
     where l.shard = any(p_shards) and l.epoch = p_epochs[array_position(p_shards, l.shard)]
       and (l.owner is null or l.expires_at <= moment)
       for no key update skip locked)
  update foliot.shard_leases l
     set owner = p_id, epoch = l.epoch + 1, expires_at = moment + make_interval(secs => p_lease_seconds)
   where l.shard = any(array(select f.shard from free f))
  returning l.shard;
end
$$;
