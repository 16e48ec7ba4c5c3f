-- purpose: forget workers that have been dead for a day and hold nothing; how many went
-- caller: sql workers/forget_dead
-- transition: none
-- fence: status, under the lock of the worker
-- index: workers_dead, executions_worker
--
-- What one still holds must be rescued first: its row says what it had begun. Who is dead claims nothing.
-- Without bitmaps the index is walked in its order and no farther than the batch.
create or replace function foliot.forget_workers(p_batch integer, p_now timestamptz)
returns bigint
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  removed bigint;
begin
  with old as materialized (
    select w.id from foliot.workers w
     where w.status = 'DEAD'
       and w.last_heartbeat_at < coalesce(p_now, statement_timestamp()) - interval '24 hours'
       and coalesce((select false from foliot.executions e where e.worker_id = w.id limit 1), true)
     order by w.last_heartbeat_at limit p_batch
       for update skip locked)
  delete from foliot.workers w
   where w.id = any(array(select o.id from old o));
  get diagnostics removed = row_count;
  return removed;
end
$$;
