-- purpose: the schedulers, the shards each holds, and how late the latest due job is
-- caller: store.fleet
-- transition: none
-- fence: none
-- index: jobs_due, shard_leases_pkey
with told as (
  select coalesce($2::timestamptz, statement_timestamp()) as now)
select s.id, s.host, s.version, s.started_at, s.last_seen_at,
       s.last_seen_at > t.now - make_interval(secs => $1::float8) as alive,
       array(select l.shard from foliot.shard_leases l
              where l.owner = s.id and l.expires_at > t.now order by l.shard) as shards,
       (select count(*) from foliot.shard_leases l
         where l.owner is null or l.expires_at <= t.now) as shards_without_owner,
       greatest(0, extract(epoch from t.now - (
         select min(d.next_run_at)
           from generate_series(0, 63) n(shard)
          cross join lateral (
                select j.next_run_at from foliot.jobs j
                 where j.shard = n.shard and j.status = 'ACTIVE' and j.next_run_at is not null
                 order by j.next_run_at limit 1) d)))::float8 as lag_seconds
  from told t
  left join foliot.schedulers s on true
 order by s.started_at, s.id;
