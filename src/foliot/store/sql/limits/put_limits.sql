-- purpose: say how many may run at once and start within a time under each key; with neither, nothing
--   limits it any more
-- caller: store.admitting
-- transition: none
-- fence: none
-- index: limits_pkey
with told as materialized (
  select t.* from unnest($1::text[], $2::integer[], $3::integer[], $4::float8[])
                    t(key, max_running, rate_count, rate_seconds) order by t.key),
gone as (
  delete from foliot.limits l
   where l.key = any(array(select t.key from told t
                            where t.max_running is null and t.rate_count is null)))
insert into foliot.limits (key, max_running, rate_count, rate_seconds)
select t.key, t.max_running, t.rate_count, t.rate_seconds from told t
 where t.max_running is not null or t.rate_count is not null order by t.key
    on conflict (key) do update set max_running = excluded.max_running,
                                    rate_count = excluded.rate_count,
                                    rate_seconds = excluded.rate_seconds;
