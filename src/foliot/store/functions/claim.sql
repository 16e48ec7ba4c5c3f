-- purpose: give a worker the next executions of a queue, by rank over the lanes it serves
-- caller: sql executions/claim_ready
-- transition: execution CLAIM: QUEUED -> RUNNING
-- fence: worker_id is null, rank is not null
-- index: executions_claim, executions_flow, executions_queue_slot, queue_clocks_at, limits_pkey
--
-- One call that commits by itself: a claimer that freezes holds nothing. Claims of one queue come one
-- after another; each begins above the virtual time of `p_back` seconds ago, because below it lie the dead
-- entries of what was claimed: 17 ms for the 50,000 of ten seconds at full speed, if a snapshot keeps them.
-- Ten seconds ago is safe: no row can have been ranked below it since (a statement that ranks ends after
-- five). Most claims look back one second and leave the rest to the next that looks further. Null looks at
-- everything, for rows that were left behind.
--
-- The time of the claim is read by the statement that claims, not before it: what it sees may have been
-- let go by an end that came in between, and a slot would seem to be taken twice.
--
-- A worker of one tenant walks along that tenant's flows alone. It passes over lower ranks of others,
-- so it moves the lane's clock only up to the lane's first row: what others may still take. What was left
-- behind it may find by the mark of another lane; then the clock of its own stays.
--
-- How many run in a queue at once is kept here, where turns are by rank: handed out before, its slots
-- would go to whoever fills the queue. What is under a rate is noted with the time of its claim.
--
-- `job_id` is set to itself so that the server does not take its index entry for one more version of the
-- same: it would look through every full page for versions to remove, under a pinned snapshot in vain.
create or replace function foliot.claim(
  p_worker_id uuid, p_queue text, p_lane_ids integer[], p_bite integer, p_back float8,
  p_now timestamptz
) returns table (id uuid, fence integer, rank float8)
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = auto
as $$
declare
  moment timestamptz;
  own_tenant uuid;
  is_paused boolean;
  most integer;
  bite integer := p_bite;
begin
  perform pg_advisory_xact_lock(21, hashtext(p_queue));
  moment := coalesce(p_now, clock_timestamp());
  select w.tenant_id into own_tenant
    from foliot.workers w where w.id = p_worker_id and w.status = 'ACTIVE';
  if not found then
    return;
  end if;
  select q.paused_at is not null, q.concurrency_limit into is_paused, most
    from foliot.queues q where q.name = p_queue;
  if most is not null then
    bite := least(p_bite, most - (select count(*)
                                    from (select from foliot.executions e
                                           where e.queue = p_queue and e.queue_slot and e.status = 'RUNNING'
                                           limit most) r));
  end if;
  if is_paused or bite <= 0 then
    return;
  end if;
  return query
  with clock as materialized (select coalesce(p_now, clock_timestamp()) as at),
  lanes as materialized (
    select l.lane_id,
           coalesce((select c.virtual_time from foliot.queue_clocks c
                      where c.lane_id = l.lane_id and c.at < moment - make_interval(secs => p_back)
                      order by c.at desc limit 1), '-infinity') as low
      from (select distinct unnest(p_lane_ids) as lane_id) l),
  heads as materialized (
    select h.tid, h.rank
      from lanes l
     cross join lateral (
           select e.ctid as tid, e.rank
             from foliot.executions e
            where e.lane_id = l.lane_id and e.worker_id is null and e.rank is not null
              and e.rank >= l.low and (e.start_by is null or e.start_by > moment)
            order by e.rank limit bite) h
     where own_tenant is null
     union all
    select h.tid, h.rank
      from generate_series(1, 10) p(priority)
     cross join lateral (
           select e.ctid as tid, e.rank
             from foliot.executions e
            where e.queue = p_queue and e.tenant_id = own_tenant
              and e.priority = p.priority::smallint and e.worker_id is null and e.rank is not null
              and e.rank >= (select min(l.low) from lanes l) and array_position(p_lane_ids, e.lane_id) is not null
              and (e.start_by is null or e.start_by > moment)
            order by e.rank limit bite) h
     where own_tenant is not null),
  free as materialized (
    select e.ctid as tid from foliot.executions e
     where e.ctid = any(array(select h.tid from heads h order by h.rank limit bite))
       and num_nulls(e.worker_id) = 1 and num_nulls(e.rank) = 0
       for no key update skip locked),
  claimed as (
    update foliot.executions e
       set status = 'RUNNING', job_id = e.job_id, worker_id = p_worker_id, claimed_at = (select t.at from clock t),
           fence = e.fence + 1, attempt_number = e.attempt_number + 1, queue_slot = most is not null
     where e.ctid = any(array(select f.tid from free f))
    returning e.id, e.fence, e.rank, e.lane_id, e.limit_keys),
  started as (
    insert into foliot.rate_starts (key, at, started)
    select k.key, (select t.at from clock t), count(*)
      from claimed c cross join lateral unnest(c.limit_keys) k(key)
     where c.limit_keys is not null
       and (select l.rate_count from foliot.limits l where l.key = k.key) is not null
     group by k.key),
  told as (
    insert into foliot.queue_clocks (queue, lane_id, virtual_time, at)
    select p_queue, m.lane_id, m.virtual_time, (select t.at from clock t)
      from (select c.lane_id, case when own_tenant is null then c.highest else (
                    select e.rank from foliot.executions e
                     where e.lane_id = c.lane_id and e.worker_id is null and e.rank is not null
                       and e.rank >= (select l.low from lanes l where l.lane_id = c.lane_id)
                     order by e.rank limit 1) end as virtual_time
              from (select c.lane_id, max(c.rank) as highest from claimed c group by c.lane_id) c) m
     where m.virtual_time is not null on conflict do nothing)
  select c.id, c.fence, c.rank from claimed c order by c.rank;
end
$$;
