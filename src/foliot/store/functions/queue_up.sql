-- purpose: give rows their ranks, in the order given, and make them claimable; the rule of core.rank
-- caller: function admit, function apply_key_limit, function release, function release_overlaps
-- transition: execution RELEASE: PENDING -> QUEUED, execution RELEASE: RETRYING -> QUEUED,
--   execution RELEASE: WAITING -> QUEUED
-- fence: none
-- index: see flow_start
--
-- The caller holds the flows' locks and, taken after them, the rows' own: their places are what they were.
create or replace function foliot.queue_up(p_tids tid[], p_moment timestamptz)
returns setof uuid
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  return query
  with rows as materialized (
    select e.*, x.n
      from unnest(p_tids) with ordinality x(tid, n)
     cross join lateral (select e.ctid as tid, e.queue, e.lane_id, e.tenant_id, e.priority
                           from foliot.executions e where e.ctid = x.tid offset 0) e),
  flows as materialized (
    select r.queue, r.lane_id, r.tenant_id, r.priority from rows r group by 1, 2, 3, 4),
  starts as materialized (
    select s.* from foliot.flow_starts(array(select f.queue from flows f), array(select f.lane_id from flows f),
                      array(select f.tenant_id from flows f), array(select f.priority from flows f)) s),
  ranked as materialized (
    select r.tid, s.start + s.step * row_number() over (partition by s.flow order by r.n) as rank
      from rows r join starts s on (s.queue, s.lane_id, s.tenant_id, s.priority)
                                 = (r.queue, r.lane_id, r.tenant_id, r.priority))
  update foliot.executions e
     set status = 'QUEUED', hold = null, rank = r.rank, queued_at = p_moment
    from ranked r
   where e.ctid = r.tid
  returning e.id;
end
$$;
