-- purpose: write the outcomes of attempts that one worker made, in one batch of any mixture
-- caller: sql executions/finish, function rescue
-- transition: execution SUCCEED: RUNNING -> SUCCEEDED, execution FAIL: RUNNING -> FAILED,
--   execution TIME_OUT: RUNNING -> TIMED_OUT, execution CANCEL: RUNNING -> CANCELLED,
--   execution RETRY: RUNNING -> RETRYING, execution SNOOZE: RUNNING -> PENDING,
--   execution HAND_BACK: RUNNING -> QUEUED, execution HOLD: RUNNING -> WAITING,
--   execution LOSE: RUNNING -> QUEUED
-- fence: id, fence, worker_id
-- index: executions_pkey, job_parents_pkey
--
-- What was asked to be cancelled is CANCELLED, whatever the worker says. A row that is not returned was
-- superseded: another claim holds it, or it is over. The rows are locked by a statement of their own,
-- in the order given: a request to cancel that came while the lock was waited for is seen, and a row
-- whose version it changed is still found. `is not distinct from` is no index condition: by `=`, the rows
-- would be looked for among all that the worker holds (1000 of them: 180 ms instead of 20). A null event
-- is a success; a column without a value for anybody is null as a whole.
create or replace function foliot.finish(
  p_worker_id uuid, p_ids uuid[], p_fences integer[], p_events text[], p_results text[],
  p_truncated boolean[], p_errors text[], p_responses text[], p_started_ats timestamptz[],
  p_delays float8[], p_dead_reasons text[], p_fingerprints text[], p_now timestamptz
) returns table (id uuid, status text)
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_custom_plan
as $$
declare
  moment timestamptz;
begin
  perform from unnest(p_ids) t(id)
    cross join lateral (select from foliot.executions e where e.id = t.id for update) e;
  moment := coalesce(p_now, clock_timestamp());
  return query
  with ours as materialized (
    select t.*, coalesce(t.told_event, 'SUCCEED') as event, e.*
      from unnest(p_ids, p_fences, p_events, p_results, p_truncated, p_errors, p_responses,
                  p_started_ats, p_delays, p_dead_reasons, p_fingerprints)
             t(id, fence, told_event, result, truncated, error, response, started_at, delay, dead_reason,
               fingerprint)
     cross join lateral (
           select e.ctid as tid, e as row,
                  case when e.cancel_requested_at is not null then 'CANCELLED'
                       else case coalesce(t.told_event, 'SUCCEED')
                                         when 'SUCCEED' then 'SUCCEEDED' when 'FAIL' then 'FAILED'
                                         when 'TIME_OUT' then 'TIMED_OUT' when 'CANCEL' then 'CANCELLED'
                                         when 'RETRY' then 'RETRYING' when 'SNOOZE' then 'PENDING'
                                         when 'HAND_BACK' then 'QUEUED' when 'HOLD' then 'WAITING'
                                         when 'LOSE' then 'QUEUED' end
                  end as status
             from foliot.executions e
            where e.id = t.id and e.worker_id is not distinct from p_worker_id and e.fence = t.fence offset 0) e),
  gone as (
    delete from foliot.executions e
     where e.ctid = any(array(select o.tid from ours o
                               where o.status in ('SUCCEEDED', 'FAILED', 'TIMED_OUT', 'CANCELLED')))),
  stayed as (
    update foliot.executions e
       set status = o.status, worker_id = null, claimed_at = null, rank = null, progress = null,
           available_at = moment + make_interval(secs => coalesce(o.delay, 0)),
           attempt_number = e.attempt_number - case when o.event in ('RETRY', 'LOSE') then 0 else 1 end,
           -- What has begun once has met its start deadline.
           start_by = case when o.started_at is null then e.start_by end,
           hold = case o.status when 'WAITING' then 'BREAKER' end,
           -- What is held has not failed: its error says why it must wait.
           hold_detail = case o.status when 'WAITING' then o.error::jsonb ->> 'message' end
      from ours o
     where e.ctid = o.tid and o.status in ('RETRYING', 'PENDING', 'QUEUED', 'WAITING')),
  recorded as (
    insert into foliot.attempts
    select a.*
      from ours o
     cross join lateral foliot.as_attempt(
             o.row, case when o.status in ('RETRYING', 'QUEUED') then 'FAILED' else o.status end,
             o.status not in ('RETRYING', 'QUEUED'), moment, o.started_at, o.result::jsonb,
             coalesce(o.truncated, false), o.error::jsonb, o.response::jsonb) a
     where o.status not in ('PENDING', 'QUEUED', 'WAITING') or o.event = 'LOSE'
        on conflict do nothing),
  letters as (
    insert into foliot.dead_letters
    select l.*
      from ours o
     cross join lateral foliot.as_dead_letter(o.row, o.dead_reason, o.fingerprint, moment, o.error::jsonb) l
     where o.dead_reason is not null and o.status in ('FAILED', 'TIMED_OUT')
        on conflict do nothing),
  notices as (
    insert into foliot.deliveries (id, fence, tenant_id, job_id, status, created_at, next_attempt_at)
    select (o.row).id, (o.row).fence, (o.row).tenant_id, (o.row).job_id, o.status, moment, moment
      from ours o
     where (o.row).notify and o.status in ('SUCCEEDED', 'FAILED', 'TIMED_OUT', 'CANCELLED')
        on conflict do nothing),
  completed as (
    insert into foliot.completions (child_id, parent_id, execution_id, tenant_id, finished_at, status)
    select p.child_id, (o.row).job_id, o.id, (o.row).tenant_id, moment, o.status
      from ours o
     cross join lateral (select p.child_id, p.needs_success from foliot.job_parents p
                          where p.parent_id = (o.row).job_id offset 0) p
     where exists (select from foliot.job_parents)
       and o.status in ('SUCCEEDED', 'FAILED', 'TIMED_OUT', 'CANCELLED')
       and (o.status = 'SUCCEEDED' or not p.needs_success))
  select o.id, o.status from ours o;
end
$$;
