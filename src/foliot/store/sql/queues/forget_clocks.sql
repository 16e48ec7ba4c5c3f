-- purpose: forget how far lanes had come long ago; how many marks went
-- caller: store.queue_clocks
-- transition: none
-- fence: none
-- index: queue_clocks_at, queue_clocks_pkey
select foliot.forget_clocks($1::timestamptz, $2::integer);
