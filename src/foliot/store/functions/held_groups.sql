-- purpose: the lists of limit keys that rows of a lane wait under and that all have room, from a place on;
--   and when the first of the rates that are used up has room again
-- caller: function admit
-- transition: none
-- fence: none
-- index: executions_held
--
-- One step for all rows of a lane under the same keys, and one step for all lists that begin with a full
-- key: the walk costs the same whether one row or 100,000 wait there. A lane that nobody serves is passed
-- over, so that what cannot run takes no slot from what can. `last` is null once the end is reached, else
-- where to go on; `p_steps` bounds one call.
create or replace function foliot.held_groups(
  p_after text[], p_after_lane integer, p_steps integer, p_groups integer, p_moment timestamptz
) returns table (groups jsonb, last text[], last_lane integer, opens_at timestamptz)
language plpgsql stable
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  found_groups jsonb := '[]';
  place text[] := coalesce(p_after, '{}');
  lane integer := coalesce(p_after_lane, 0);
  opening timestamptz;
  head record;
  known_lane integer;
  known_tenant uuid;
  served boolean;
  keys text[];
  seen text[] := '{}';
  rooms bigint[] := '{}';
  full_at integer;
begin
  for step in 1 .. p_steps loop
    select e.limit_keys, e.lane_id, e.tenant_id into head
      from foliot.executions e
     where e.status = 'WAITING' and e.hold = 'LIMIT' and (e.limit_keys collate "C", e.lane_id) > (place, lane)
     order by e.limit_keys collate "C", e.lane_id limit 1;
    if not found then
      return query select found_groups, null::text[], null::integer, opening;
      return;
    end if;
    keys := head.limit_keys;
    -- Neighbours share their first keys: only what changed is counted again.
    select array_agg(case when k.key = seen[k.n] then rooms[k.n] else r.room end order by k.n),
           least(opening, min(r.opens_at))
      into rooms, opening
      from unnest(keys) with ordinality k(key, n)
      left join lateral foliot.limit_room(
                  case when k.key is distinct from seen[k.n] then array[k.key] end, p_moment) r on true;
    seen := keys;
    full_at := (select min(r.n) from unnest(rooms) with ordinality r(room, n) where r.room <= 0);
    if full_at is not null then
      -- Every key begins with a letter, and all letters come before '~'.
      place := keys[1:full_at] || '~'::text;
      lane := 0;
      continue;
    end if;
    if (known_lane, known_tenant) is distinct from (head.lane_id, head.tenant_id) then
      served := foliot.is_served(head.lane_id, head.tenant_id);
      known_lane := head.lane_id;
      known_tenant := head.tenant_id;
    end if;
    if served then
      found_groups := found_groups || jsonb_build_object('keys', keys, 'lane', head.lane_id);
    end if;
    place := keys;
    lane := head.lane_id;
    exit when jsonb_array_length(found_groups) = p_groups;
  end loop;
  return query select found_groups, place, lane, opening;
end
$$;
