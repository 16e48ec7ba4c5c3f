-- purpose: the lists of limit keys that rows wait under and that all have room, from a place on
-- caller: function admit
-- transition: none
-- fence: none
-- index: executions_held
--
-- One step for all rows under the same keys, and one step for all lists that begin with a full key:
-- the walk costs the same whether one row or 100,000 wait there. `last` is null once the end is
-- reached, else where to go on; `p_steps` bounds one call.
create or replace function foliot.held_groups(p_after text[], p_steps integer, p_groups integer)
returns table (groups jsonb, last text[])
language plpgsql stable
set enable_seqscan = off
as $$
declare
  found_groups jsonb := '[]';
  place text[] := coalesce(p_after, '{}');
  keys text[];
  seen text[] := '{}';
  rooms bigint[] := '{}';
  full_at integer;
begin
  for step in 1 .. p_steps loop
    select e.limit_keys into keys
      from foliot.executions e
     where e.status = 'WAITING' and e.hold = 'LIMIT' and e.limit_keys collate "C" > place
     order by e.limit_keys collate "C" limit 1;
    if not found then
      return query select found_groups, null::text[];
      return;
    end if;
    -- Neighbours share their first keys: only what changed is counted again.
    rooms := array(select case when k.key = seen[k.n] then rooms[k.n]
                               else (select r.room from foliot.limit_room(array[k.key]) r) end
                     from unnest(keys) with ordinality k(key, n) order by k.n);
    seen := keys;
    full_at := (select min(r.n) from unnest(rooms) with ordinality r(room, n) where r.room <= 0);
    if full_at is null then
      found_groups := found_groups || jsonb_build_array(to_jsonb(keys));
      place := keys;
      exit when jsonb_array_length(found_groups) = p_groups;
    else
      -- Every key begins with a letter, and all letters come before '~'.
      place := keys[1:full_at] || '~'::text;
    end if;
  end loop;
  return query select found_groups, place;
end
$$;
