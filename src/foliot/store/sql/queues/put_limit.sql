-- purpose: say how many executions of a queue may run at once; null takes the limit away
-- caller: store.queues
-- transition: none
-- fence: under the lock of the queue's claims
-- index: queues_pkey
select foliot.limit_queue($1::text, $2::integer);
