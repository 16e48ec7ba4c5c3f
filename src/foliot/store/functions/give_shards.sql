-- purpose: a scheduler gives shards back: nobody holds them, and anybody may take them at once
-- caller: sql shards/give
-- transition: none
-- fence: owner, epoch
-- index: shard_leases_pkey, schedulers_pkey
--
-- Without a list, it is all that it holds under whatever epoch, and the node itself: it stops. The epoch stays
-- until somebody takes the shard.
create or replace function foliot.give_shards(p_id uuid, p_shards smallint[], p_epochs bigint[])
returns integer
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  given integer;
begin
  perform from foliot.shard_leases l
    where l.owner = p_id and (p_shards is null or l.shard = any(p_shards)) order by l.shard for no key update;
  update foliot.shard_leases l set owner = null, expires_at = null
   where l.owner = p_id
     and (p_shards is null
          or l.shard = any(p_shards) and l.epoch = p_epochs[array_position(p_shards, l.shard)]);
  get diagnostics given = row_count;
  if p_shards is null then
    delete from foliot.schedulers s where s.id = p_id;
  end if;
  return given;
end
$$;
