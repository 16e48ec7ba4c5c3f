-- purpose: let rows go that a limit held, as many as every one of their keys has room for
-- caller: sql limits/admit_held
-- transition: execution RELEASE: WAITING -> QUEUED
-- fence: status, hold
-- index: executions_held, executions_pkey
--
-- Nobody else gives a rank to a row with limit keys, and here it happens under a lock for each key, with
-- slots counted after the lock was had: a count can only be too high. The locks are taken in one order
-- (keys, then flows) before any row, and rows in use by others are passed over. `is not distinct from`
-- is no index condition: by `=`, each row would be looked for among all that wait. `opens_in` is how many
-- seconds it takes until the first rate that is used up has room again; null if none is, or nobody can say.
--
-- Under one limit the slots are drawn among the priorities that wait, 32 to 1 for the most against the least
-- urgent, and within a priority the longest due goes first. The times of an urgent one's turns are drawn as
-- those of a process that is so many times as fast, by `p_chance`, another in each call: no count is kept, and
-- nobody waits for ever. Of each group and priority no more rows are read than it has room for.
--
-- What may stand ready in a queue with a limit is counted like a key, for each first key: under the lock of
-- that one, nobody else adds to it.
create or replace function foliot.admit(
  p_after text[], p_after_lane integer, p_within integer, p_steps integer, p_groups integer, p_batch integer,
  p_chance bigint, p_now timestamptz
) returns table (admitted uuid[], last text[], last_lane integer, opens_in float8, queues text[], cut integer)
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  found_groups jsonb;
  known_places jsonb;
  opening timestamptz;
  keys text[];
  rooms bigint[];
  chosen uuid[] := '{}';
  tenant_ids uuid[];
  ready tid[];
  moment timestamptz := coalesce(p_now, clock_timestamp());
  candidate record;
  places integer[];
  place integer;
begin
  select g.groups, g.last, g.last_lane, g.opens_at, g.cut, g.places
    into found_groups, last, last_lane, opening, cut, known_places
    from foliot.held_groups(p_after, p_after_lane, p_within, p_steps, p_groups, moment) g;
  opens_in := extract(epoch from opening - moment);
  keys := array(select distinct k.key from jsonb_array_elements(found_groups) g
                 cross join lateral jsonb_array_elements_text(g -> 'keys') k(key));
  perform foliot.lock_limits(keys);
  moment := coalesce(p_now, clock_timestamp());
  rooms := array(select coalesce(r.room, p_batch) from foliot.limit_room(keys, moment) r order by r.n);
  if known_places <> '{}' then
    select keys || array_agg(r.key), rooms || array_agg(r.room) into keys, rooms
      from (select g.queue || ' ' || g.key as key,
                   max(foliot.queue_room(g.queue, g.lane_id, g.key, known_places -> g.queue, moment)) as room
              from (select distinct g ->> 'queue' as queue, (g ->> 'lane')::integer as lane_id,
                           g -> 'keys' ->> 0 as key
                      from jsonb_array_elements(found_groups) g where g ->> 'queue' is not null) g
             group by 1) r;
  end if;

  for candidate in
    select c.id, g.under
      from (select g.*, array_remove(g.limit_keys || (g.queue || ' ' || g.limit_keys[1]), null) as under
              from (select array(select jsonb_array_elements_text(g -> 'keys')) as limit_keys,
                           (g ->> 'lane')::integer as lane_id, g ->> 'queue' as queue
                      from jsonb_array_elements(found_groups) g) g) g
     cross join generate_series(1, 10) p(priority)
     cross join lateral (
           select e.id, e.priority, e.scheduled_time
             from foliot.executions e
            where e.status = 'WAITING' and e.hold = 'LIMIT'
              and e.limit_keys collate "C" = g.limit_keys and e.lane_id = g.lane_id
              and e.priority = p.priority::smallint
            order by e.limit_keys collate "C", e.lane_id, e.priority, e.scheduled_time, e.id
            limit (select least(p_batch, min(greatest(rooms[array_position(keys, k.key)], 0)))
                     from unnest(g.under) k(key))) c
     order by sum(-ln((1 + (hashtextextended(c.id::text, p_chance) & 4294967295)) / 4294967296.0::float8)
                   / power(2.0::float8, (10 - c.priority) * 5.0 / 9))
                over (partition by c.priority order by c.scheduled_time, c.id), c.id
  loop
    places := array(select array_position(keys, k.key) from unnest(candidate.under) k(key));
    continue when exists (select from unnest(places) p(n) where rooms[p.n] <= 0);
    foreach place in array places loop
      rooms[place] := rooms[place] - 1;
    end loop;
    chosen := chosen || candidate.id;
    exit when cardinality(chosen) >= p_batch;
  end loop;

  select array_agg(e.queue), array_agg(e.tenant_id) into queues, tenant_ids
    from foliot.executions e where e.id = any(chosen);
  perform foliot.lock_flows(queues, tenant_ids);
  moment := coalesce(p_now, clock_timestamp());
  select array_agg(e.tid order by c.n) into ready
    from unnest(chosen) with ordinality c(id, n)
   cross join lateral (
         select e.ctid as tid
           from foliot.executions e
          where e.id = c.id and e.hold is not distinct from 'LIMIT'
            for no key update skip locked) e;
  admitted := array(select foliot.queue_up(ready, moment));
  return next;
end
$$;
