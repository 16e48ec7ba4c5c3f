-- purpose: who some executions are that others wait for: their job, since when, and on which worker
-- caller: function explain, function explain_limits, function explain_queue
-- transition: none
-- fence: none
-- index: executions_pkey, workers_pkey
create or replace function foliot.explain_holders(p_ids uuid[])
returns jsonb
language plpgsql stable
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  return (
    select coalesce(jsonb_agg(jsonb_build_object(
             'execution_id', e.id, 'job_name', e.job_name, 'status', e.status,
             'since', coalesce(e.claimed_at, e.queued_at, e.created_at),
             'worker', (select w.name from foliot.workers w where w.id = e.worker_id)) order by x.n), '[]')
      from unnest(p_ids) with ordinality x(id, n)
     cross join lateral (select e.* from foliot.executions e where e.id = x.id offset 0) e);
end
$$;
