-- purpose: take shards that are free or whose lease has run out; those that were got
-- caller: store.shards
-- transition: none
-- fence: epoch, expires_at
-- index: shard_leases_pkey
select shard from foliot.take_shards($1::uuid, $2::smallint[], $3::bigint[], $4::float8, $5::timestamptz) shard;
