-- purpose: after a finish whose commit is unknown: what became of each attempt
-- caller: store.finishing
-- transition: none
-- fence: id, fence, worker_id
-- index: executions_pkey, attempts_identity
--
-- HELD: still the worker's, nothing was written. RETRYING: the attempt is over and another follows. Live
-- and history in one statement, so that a row that is just finishing is not missed. An attempt without a row of either is another's by now.
select x.id,
       coalesce(case when a.final then a.status when not a.final then 'RETRYING' end,
                case when e.worker_id = $1::uuid then 'HELD'
                     when e.worker_id is null then e.status end) as status
  from unnest($2::uuid[], $3::integer[]) x(id, fence)
  left join lateral (
       select e.worker_id, e.status from foliot.executions e
        where e.id = x.id and e.fence = x.fence offset 0) e on true
  left join lateral (
       select a.status, a.final from foliot.attempts a
        where a.id = x.id and a.fence = x.fence and a.worker_id = $1::uuid
          -- A commit is asked about within hours, and two days keep the search to a few partitions.
          and a.finished_at > coalesce($4::timestamptz, statement_timestamp()) - interval '2 days'
        limit 1) a on true;
