-- purpose: the limits whose rows are to be walked over: never yet, or not since all who may have
--   written without them are done
-- caller: store.limit_changes
-- transition: none
-- fence: none
-- index: limit_changes_pkey
select c.key, c.changed_at, t.settled <= t.now as is_last
  from foliot.limit_changes c
 cross join lateral (
       select coalesce($1::timestamptz, statement_timestamp()) as now,
              c.changed_at + make_interval(secs => $2::float8) as settled) t
 where c.walked_at is null or t.settled <= t.now
 order by c.walked_at nulls first, c.key limit $3::integer;
