-- purpose: the row of history that a live row becomes; the one place that knows both shapes
-- caller: function finish, function cancel, function expire
-- transition: none
-- fence: none
-- index: none
--
-- Plain SQL in one SELECT, so that it is inlined.
create or replace function foliot.as_attempt(
  e foliot.executions, p_status text, p_final boolean, p_finished_at timestamptz,
  p_started_at timestamptz, p_result jsonb, p_truncated boolean, p_error jsonb, p_response jsonb
) returns setof foliot.attempts
language sql immutable
as $$
  select e.id, e.fence, e.attempt_number, e.tenant_id, e.job_id, e.job_version, e.job_name, e.tags,
         p_status, p_final, e.trigger, e.queue, e.priority, e.scheduled_time, e.available_at,
         e.queued_at, e.claimed_at, p_started_at, p_finished_at, e.worker_id, e.labels, e.payload,
         p_result, p_truncated, p_error, p_response, e.idempotency_key, e.retry_of, e.dag_run_id,
         e.trace_id, e.cancel_requested_at, foliot.concurrency_key(e.limit_keys)
$$;
