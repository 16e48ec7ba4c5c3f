-- purpose: how much of each limit that there is for some keys is used, and by whom
-- caller: function explain
-- transition: none
-- fence: none
-- index: limits_pkey, executions_slot_1, executions_slot_2, executions_slot_3, rate_starts_key
--
-- By the rule of limit_room, which knows when a rate has room again. Those that have run longest are named.
create or replace function foliot.explain_limits(p_keys text[], p_moment timestamptz)
returns jsonb
language plpgsql stable
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  return (
    select coalesce(jsonb_agg(jsonb_build_object(
             'key', k.key, 'max_running', l.max_running, 'slots', held.slots, 'rate_count', l.rate_count,
             'rate_seconds', l.rate_seconds, 'used', held.ready + recent.started, 'room', r.room,
             'opens_at', r.opens_at, 'holders', foliot.explain_holders(held.ids)) order by k.n), '[]')
      from unnest(p_keys) with ordinality k(key, n)
     cross join lateral (select l.max_running, l.rate_count, l.rate_seconds
                           from foliot.limits l where l.key = k.key offset 0) l
     cross join lateral foliot.limit_room(array[k.key], p_moment) r
     cross join lateral (
           select count(*) as slots, count(*) filter (where h.worker_id is null) as ready,
                  (array_agg(h.id order by h.claimed_at nulls last, h.id))[1:3] as ids
             from (select e.id, e.worker_id, e.claimed_at from foliot.executions e
                    where e.limit_keys[1] = k.key and e.limit_keys[1] is not null and e.rank is not null
                    union all
                   select e.id, e.worker_id, e.claimed_at from foliot.executions e
                    where e.limit_keys[2] = k.key and e.limit_keys[2] is not null and e.rank is not null
                    union all
                   select e.id, e.worker_id, e.claimed_at from foliot.executions e
                    where e.limit_keys[3] = k.key and e.limit_keys[3] is not null and e.rank is not null)
                  h) held
     cross join lateral (
           select coalesce(sum(s.started), 0) as started
             from foliot.rate_starts s
            where s.key = k.key and s.at > p_moment - make_interval(secs => l.rate_seconds)) recent);
end
$$;
