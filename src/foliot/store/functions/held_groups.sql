-- purpose: the lists of limit keys that rows of a lane wait under and that all have room, from a place on;
--   and when the first of the rates that are used up has room again
-- caller: function admit
-- transition: none
-- fence: none
-- index: executions_held, lanes_pkey, queues_pkey
--
-- One step for all rows of a lane under the same keys, and one step for all lists that begin with a full
-- key: the walk costs the same whether one row or 100,000 wait there. A lane that nobody serves is passed
-- over, so that what cannot run takes no slot from what can; so is one of a queue with a limit where enough
-- stand ready already, and what is known of such queues comes back as `places`. `last` is null once the end
-- is reached, else where to go on; `p_steps` bounds one call.
--
-- `p_within`: only lists whose first so many keys are those of `p_after`. `cut`: so many first keys of
-- `p_after` are those of a limit that is full; what waits under it from there on was not looked at.
create or replace function foliot.held_groups(
  p_after text[], p_after_lane integer, p_within integer, p_steps integer, p_groups integer,
  p_moment timestamptz
) returns table (groups jsonb, last text[], last_lane integer, opens_at timestamptz, cut integer, places jsonb)
language plpgsql stable
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  found_groups jsonb := '[]';
  known_places jsonb := '{}';
  place text[] := coalesce(p_after, '{}');
  lane integer := coalesce(p_after_lane, 0);
  opening timestamptz;
  cut_at integer;
  head record;
  known_lane integer;
  known_tenant uuid;
  known_first text;
  served boolean;
  limited text;
  fits boolean;
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
    if not found or head.limit_keys[1:p_within] <> p_after[1:p_within] then
      return query select found_groups, null::text[], null::integer, opening, cut_at, known_places;
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
      if step = 1 and keys[1:full_at] = p_after[1:full_at] then
        cut_at := full_at;
      end if;
      -- Every key begins with a letter, and all letters come before '~'.
      place := keys[1:full_at] || '~'::text;
      lane := 0;
      continue;
    end if;
    if (known_lane, known_tenant) is distinct from (head.lane_id, head.tenant_id) then
      served := foliot.is_served(head.lane_id, head.tenant_id);
      limited := (select q.name from foliot.lanes l join foliot.queues q on q.name = l.queue
                   where l.id = head.lane_id and q.concurrency_limit is not null);
      known_lane := head.lane_id;
      known_tenant := head.tenant_id;
      known_first := null;
    end if;
    if served and limited is not null and keys[1] is distinct from known_first then
      if not known_places ? limited then
        known_places := known_places || jsonb_build_object(limited, foliot.queue_places(limited, p_moment));
      end if;
      fits := foliot.queue_room(limited, head.lane_id, keys[1], known_places -> limited, p_moment) > 0;
      known_first := keys[1];
    end if;
    if served and (limited is null or fits) then
      found_groups := found_groups || jsonb_build_object('keys', keys, 'lane', head.lane_id, 'queue', limited);
    end if;
    place := keys;
    lane := head.lane_id;
    exit when jsonb_array_length(found_groups) = p_groups;
  end loop;
  return query select found_groups, place, lane, opening, cut_at, known_places;
end
$$;
