-- purpose: how many more may hold a slot of each key; null where nothing limits it
-- caller: function held_groups, function admit
-- transition: none
-- fence: none
-- index: limits_pkey, executions_slot_1, executions_slot_2, executions_slot_3, executions_slot_4
--
-- A slot is held by a row that has a rank: it may be claimed at any moment, or it runs. It comes back
-- when the row is over, retried, handed back or rescued, because all of these take the rank away.
create or replace function foliot.limit_room(p_keys text[])
returns table (n bigint, key text, room bigint)
language plpgsql stable rows 10
set enable_seqscan = off
as $$
begin
  return query
  select k.n, k.key,
         (select l.max_running from foliot.limits l where l.key = k.key)
         - (select count(*) from foliot.executions e
             where e.limit_keys[1] = k.key and e.limit_keys[1] is not null and e.rank is not null)
         - (select count(*) from foliot.executions e
             where e.limit_keys[2] = k.key and e.limit_keys[2] is not null and e.rank is not null)
         - (select count(*) from foliot.executions e
             where e.limit_keys[3] = k.key and e.limit_keys[3] is not null and e.rank is not null)
         - (select count(*) from foliot.executions e
             where e.limit_keys[4] = k.key and e.limit_keys[4] is not null and e.rank is not null)
    from unnest(p_keys) with ordinality k(key, n);
end
$$;
