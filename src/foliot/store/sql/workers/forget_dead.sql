-- purpose: forget workers that have been dead for a day and hold nothing; how many went
-- caller: store.forgetting
-- transition: none
-- fence: status, under the lock of the worker
-- index: workers_dead
select foliot.forget_workers($1::integer, $2::timestamptz);
