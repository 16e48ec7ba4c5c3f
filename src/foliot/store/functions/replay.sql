-- purpose: run dead letters again, each once, however many ask at once
-- caller: sql dead_letters/replay
-- transition: none
-- fence: replayed_at is null, discarded_at is null
-- index: dead_letters_pkey, executions_pkey; see enqueue
--
-- The letters decide: they are locked first, in the order given, and if one of them is closed by now nothing
-- is done and no row comes back. The new executions are for the time that the old ones were for, and what
-- was poison runs alone from the beginning. Without letters it is a request like others, known again by its
-- key: what is over without one is run again.
create or replace function foliot.replay(
  p_tenant_id uuid, p_dead_ids uuid[], p_times timestamptz[], p_key text, p_ids uuid[], p_job_ids uuid[],
  p_triggers text[], p_payloads text[], p_priorities smallint[], p_run_ats timestamptz[], p_delays float8[],
  p_instants timestamptz[], p_scheduled_ids uuid[], p_rerun_ids uuid[], p_labels text[], p_limit_keys text[],
  p_limits integer[], p_unique_keys text[], p_idempotency_keys text[], p_retry_ofs uuid[], p_trace_ids text[],
  p_now timestamptz
) returns table (dead_letter_id uuid, execution_id uuid)
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  made uuid[];
  moment timestamptz;
begin
  perform from unnest(p_dead_ids) x(id)
    cross join lateral (select from foliot.dead_letters d
                         where d.id = x.id and d.tenant_id = p_tenant_id for update) d;
  if (select count(*) from foliot.dead_letters d
       where d.id = any(p_dead_ids) and d.tenant_id = p_tenant_id
         and num_nulls(d.replayed_at, d.discarded_at) = 2) < cardinality(p_dead_ids) then
    return;
  end if;
  made := array(select q.id
                  from foliot.enqueue(p_tenant_id, 'replay', p_key, '', p_ids, p_job_ids, p_triggers,
                         p_payloads, p_priorities, p_run_ats, p_delays, p_instants, p_scheduled_ids,
                         p_rerun_ids, p_labels, p_limit_keys, p_limits, p_unique_keys, p_idempotency_keys,
                         p_retry_ofs, p_trace_ids, p_now) with ordinality q(id, outcome, replayed, n)
                 order by q.n);
  update foliot.executions e
     set scheduled_time = p_times[array_position(made, e.id)],
         run_alone = coalesce((select d.reason = 'POISON' from foliot.dead_letters d where d.id = e.retry_of),
                              false)
   where e.id = any(made) and e.fence = 0;
  moment := coalesce(p_now, clock_timestamp());
  update foliot.dead_letters d
     set replayed_as = made[array_position(p_dead_ids, d.id)], replayed_at = moment
   where d.id = any(p_dead_ids) and num_nulls(d.replayed_at, d.discarded_at) = 2;
  return query select x.dead_letter_id, x.execution_id
                 from unnest(p_dead_ids, made) x(dead_letter_id, execution_id);
end
$$;
