-- purpose: a page of the queues: those that a job ever named or the operator has set, and how full each is
-- caller: store.queues
-- transition: none
-- fence: none
-- index: queues_pkey, executions_flow, executions_worker
with names as materialized (
  select l.queue as name from foliot.lanes l
   where l.queue > coalesce($1::text, '') and ($2::text is null or l.queue = $2::text)
   union
  select q.name from foliot.queues q
   where q.name > coalesce($1::text, '') and ($2::text is null or q.name = $2::text)
   order by 1 limit $3::integer),
running as materialized (
  select e.queue, count(*) as count from foliot.executions e where e.worker_id is not null group by 1)
select n.name, q.paused_at, q.status_note, q.concurrency_limit, coalesce(r.count, 0) as running,
       (select count(*) from (select from foliot.executions e
                               where e.queue = n.name and e.worker_id is null and e.rank is not null
                               limit $4::integer) c) as depth,
       extract(epoch from coalesce($6::timestamptz, statement_timestamp())
                          - foliot.oldest_wait(n.name, $5::integer))::float8 as oldest_wait_seconds
  from names n
  left join foliot.queues q on q.name = n.name
  left join running r on r.queue = n.name
 order by n.name;
