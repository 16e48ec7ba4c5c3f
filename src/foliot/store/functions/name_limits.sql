-- purpose: keep the limits that are named until the transaction ends, and write those that are new or differ
-- caller: function apply_key_limit, function enqueue
-- transition: none
-- fence: limits_pkey
-- index: limits_pkey
--
-- Of several limits for one key the lowest counts, whatever was written before. Without the lock, one that
-- nobody named any more could be forgotten between this and the insert.
create or replace function foliot.name_limits(p_keys text[], p_limits integer[])
returns void
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  if coalesce(array_remove(p_keys, null), '{}') = '{}' then
    return;
  end if;
  perform from foliot.limits l where l.key = any(p_keys) order by l.key for key share;
  insert into foliot.limits (key, max_running)
  select x.key, x.most
    from (select k.key, min(k.most) as most from unnest(p_keys, p_limits) k(key, most)
           where k.most is not null group by k.key) x
   where not exists (select from foliot.limits l where l.key = x.key and l.max_running = x.most)
   order by x.key
      on conflict (key) do update set max_running = excluded.max_running;
end
$$;
