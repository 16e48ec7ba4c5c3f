-- purpose: let rows go that a limit held, as many as every one of their keys has room for
-- caller: sql limits/admit_held
-- transition: execution RELEASE: WAITING -> QUEUED
-- fence: status, hold
-- index: executions_held, executions_pkey
--
-- Nobody else gives a rank to a row with limit keys, and here it happens under a lock for each key, with
-- slots counted after the lock was had: a count can only be too high. The locks are taken in one order
-- (keys, then flows) before any row, and rows in use by others are passed over. `is not distinct from`
-- is no index condition: by `=`, each row would be looked for among all that wait.
--
-- Under one limit the most urgent go first, then the longest due. A slot is a place to run, not a share of
-- turns: a tenant, job or key is one owner's work, which the owner has put in order by priority itself.
-- Of each group no more rows are read than it has room for, so the order over a page is exact.
create or replace function foliot.admit(
  p_after text[], p_steps integer, p_groups integer, p_batch integer, p_now timestamptz
) returns table (admitted uuid[], last text[])
language plpgsql
set enable_seqscan = off
as $$
declare
  found_groups jsonb;
  reached text[];
  keys text[];
  rooms bigint[];
  flows text[];
  chosen uuid[] := '{}';
  ready tid[];
  moment timestamptz;
  candidate record;
  places integer[];
  key text;
begin
  select g.groups, g.last into found_groups, reached
    from foliot.held_groups(p_after, p_steps, p_groups) g;
  keys := array(select distinct k.key from jsonb_array_elements(found_groups) g
                 cross join lateral jsonb_array_elements_text(g) k(key));
  perform foliot.lock_limits(keys);
  rooms := array(select coalesce(r.room, p_batch) from foliot.limit_room(keys) r order by r.n);

  for candidate in
    select c.id, c.queue, c.tenant_id, c.limit_keys
      from (select array(select jsonb_array_elements_text(g)) as limit_keys
              from jsonb_array_elements(found_groups) g) g
     cross join lateral (
           select e.id, e.queue, e.tenant_id, e.priority, e.scheduled_time, e.limit_keys
             from foliot.executions e
            where e.status = 'WAITING' and e.hold = 'LIMIT'
              and e.limit_keys collate "C" = g.limit_keys
            order by e.limit_keys collate "C", e.priority, e.scheduled_time, e.id
            limit (select least(p_batch, min(greatest(rooms[array_position(keys, k.key)], 0)))
                     from unnest(g.limit_keys) k(key))) c
     order by c.priority, c.scheduled_time, c.id
  loop
    places := array(select array_position(keys, k.key) from unnest(candidate.limit_keys) k(key));
    continue when exists (select from unnest(places) p(n) where rooms[p.n] <= 0);
    for key in select unnest(candidate.limit_keys) loop
      rooms[array_position(keys, key)] := rooms[array_position(keys, key)] - 1;
    end loop;
    chosen := chosen || candidate.id;
    exit when cardinality(chosen) >= p_batch;
  end loop;

  perform foliot.lock_flows(array_agg(e.queue), array_agg(e.tenant_id))
     from foliot.executions e where e.id = any(chosen);
  moment := coalesce(p_now, clock_timestamp());
  select array_agg(e.tid order by c.n) into ready
    from unnest(chosen) with ordinality c(id, n)
   cross join lateral (
         select e.ctid as tid
           from foliot.executions e
          where e.id = c.id and e.hold is not distinct from 'LIMIT'
            for no key update skip locked) e;
  return query select array(select foliot.queue_up(ready, moment)), reached;
end
$$;
