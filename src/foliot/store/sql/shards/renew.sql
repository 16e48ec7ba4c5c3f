-- purpose: a scheduler lives and keeps the shards it holds; the time, and which are still its own
-- caller: store.shards
-- transition: none
-- fence: owner, epoch
-- index: schedulers_pkey, shard_leases_pkey
select moment, shards
  from foliot.renew_shards($1::uuid, $2::text, $3::text, $4::smallint[], $5::bigint[], $6::float8,
                           $7::timestamptz);
