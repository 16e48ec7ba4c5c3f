-- purpose: say how many executions of a queue may run at once; null takes the limit away
-- caller: sql queues/put_limit
-- transition: none
-- fence: under the lock of the queue's claims
-- index: queues_pkey, executions_worker
--
-- What runs already holds a slot from now on. No claim comes in between, and the rows are locked in one
-- order, as by those who finish them.
create or replace function foliot.limit_queue(p_queue text, p_limit integer)
returns void
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  perform pg_advisory_xact_lock(21, hashtext(p_queue));
  insert into foliot.queues (name, concurrency_limit) values (p_queue, p_limit)
      on conflict (name) do update set concurrency_limit = excluded.concurrency_limit;
  if p_limit is not null then
    perform from foliot.executions e
      where e.worker_id is not null and e.queue = p_queue and not e.queue_slot
      order by e.id for no key update;
    update foliot.executions e set queue_slot = true
     where e.worker_id is not null and e.queue = p_queue and not e.queue_slot;
  end if;
end
$$;
