-- purpose: how many more rows under a first key may stand ready in a lane of a queue with a limit
-- caller: function admit, function held_groups
-- transition: none
-- fence: none
-- index: executions_slot_1
--
-- Each of them holds a slot that nobody else of its tenant or job can use, so there are no more than the queue
-- has places for (`p_places`, of queue_places). They are counted for each first key, and not together: ranks
-- decide between tenants. While the queue has a free place, who has stood in another lane for five seconds
-- waits for a worker and not for the queue, and keeps nobody out.
create or replace function foliot.queue_room(
  p_queue text, p_lane_id integer, p_key text, p_places jsonb, p_moment timestamptz
) returns bigint
language plpgsql stable
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  return (p_places ->> 'places')::bigint
         - (select count(*) from foliot.executions e
             where e.limit_keys[1] = p_key and e.limit_keys[1] is not null and e.rank is not null
               and num_nulls(e.worker_id) = 1 and e.queue = p_queue
               and ((p_places ->> 'full')::boolean or e.lane_id = p_lane_id
                    or e.queued_at > p_moment - interval '5 seconds'));
end
$$;
