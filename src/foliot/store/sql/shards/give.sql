-- purpose: give shards back, or everything and the scheduler itself; how many shards went
-- caller: store.shards
-- transition: none
-- fence: owner, epoch
-- index: shard_leases_pkey, schedulers_pkey
select foliot.give_shards($1::uuid, $2::smallint[], $3::bigint[]);
