-- purpose: say how many may run at once under each key; null takes the limit away
-- caller: store.admitting
-- transition: none
-- fence: none
-- index: limits_pkey
with told as materialized (
  select t.key, t.max_running from unnest($1::text[], $2::integer[]) t(key, max_running) order by t.key),
gone as (
  delete from foliot.limits l
   where l.key = any(array(select t.key from told t where t.max_running is null)))
insert into foliot.limits (key, max_running)
select t.key, t.max_running from told t where t.max_running is not null order by t.key
    on conflict (key) do update set max_running = excluded.max_running;
