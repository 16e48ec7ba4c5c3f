-- purpose: end what nobody started before its start deadline
-- caller: sql executions/expire
-- transition: execution EXPIRE: PENDING -> FAILED, execution EXPIRE: WAITING -> FAILED,
--   execution EXPIRE: QUEUED -> FAILED, execution EXPIRE: RETRYING -> FAILED
-- fence: worker_id is null
-- index: executions_start_by, job_parents_pkey
create or replace function foliot.expire(
  p_limit integer, p_error jsonb, p_fingerprint text, p_now timestamptz
) returns table (id uuid)
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  moment timestamptz := coalesce(p_now, statement_timestamp());
begin
  return query
  with late as materialized (
    select e.ctid as tid from foliot.executions e
     where e.start_by <= moment and e.worker_id is null
     order by e.start_by limit p_limit
       for update skip locked),
  gone as (
    delete from foliot.executions e
     where e.ctid = any(array(select l.tid from late l)) and e.worker_id is null
    returning e as row),
  recorded as (
    insert into foliot.attempts
    select a.* from gone g
     cross join lateral foliot.as_attempt(
             g.row, 'FAILED', true, foliot.end_after((g.row).id, (g.row).fence, moment), null, null,
             false, p_error, null) a
        on conflict do nothing),
  letters as (
    insert into foliot.dead_letters
    select l.* from gone g
     cross join lateral foliot.as_dead_letter(g.row, 'EXPIRED', p_fingerprint, moment, p_error) l
        on conflict do nothing),
  notices as (
    insert into foliot.deliveries (id, fence, tenant_id, job_id, status, created_at, next_attempt_at)
    select (g.row).id, (g.row).fence, (g.row).tenant_id, (g.row).job_id, 'FAILED', moment, moment
      from gone g where (g.row).notify
        on conflict do nothing),
  completed as (
    insert into foliot.completions (child_id, parent_id, execution_id, tenant_id, finished_at, status)
    select p.child_id, (g.row).job_id, (g.row).id, (g.row).tenant_id, moment, 'FAILED'
      from gone g
     cross join lateral (select p.child_id from foliot.job_parents p
                          where p.parent_id = (g.row).job_id and not p.needs_success offset 0) p
     where exists (select from foliot.job_parents))
  select (g.row).id from gone g;
end
$$;
