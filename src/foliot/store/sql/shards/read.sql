-- purpose: who holds which shard until when, which schedulers live, and what time it is
-- caller: store.shards
-- transition: none
-- fence: none
-- index: shard_leases_pkey
select t.moment, l.shards, l.owners, l.epochs, l.expiries,
       array(select s.id from foliot.schedulers s
              where s.last_seen_at > t.moment - make_interval(secs => $1::float8) order by s.id) as live
  from (select coalesce($2::timestamptz, statement_timestamp()) as moment) t
 cross join (
       select array_agg(l.shard order by l.shard) as shards, array_agg(l.owner order by l.shard) as owners,
              array_agg(l.epoch order by l.shard) as epochs,
              array_agg(l.expires_at order by l.shard) as expiries
         from foliot.shard_leases l) l;
