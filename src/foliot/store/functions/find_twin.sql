-- purpose: the execution that a new one would repeat: a live one with its unique key, or, for a backfill,
--   the one that its instant has had, live or over
-- caller: function enqueue
-- transition: none
-- fence: none
-- index: executions_unique_key, executions_pkey, attempts_identity
--
-- An instant's execution is found by the ids it can have. It ended after the instant, which spares all
-- earlier days of history; the day in between is for clocks that are told. Plain SQL in one SELECT, so
-- that it is inlined: live rows and history are read at one moment, and nothing slips between them.
create or replace function foliot.find_twin(
  p_job_id uuid, p_unique_key text, p_instant timestamptz, p_ids uuid[]
) returns table (id uuid)
language sql stable
as $$
  select t.id
    from (select e.id from foliot.executions e
           where p_unique_key is not null and e.job_id = p_job_id and e.unique_key = p_unique_key
           union all
          select e.id from foliot.executions e
           where p_instant is not null and e.id = any(p_ids)
           union all
          select a.id from foliot.attempts a
           where p_instant is not null and a.id = any(p_ids)
             and a.finished_at >= p_instant - interval '1 day') t
   limit 1
$$;
