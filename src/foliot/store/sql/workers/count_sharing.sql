-- purpose: how many workers take from the same queues, so that a hint does not wake them all at once
-- caller: store.workers
-- transition: none
-- fence: none
-- index: none
select count(*)
  from foliot.workers w
 where w.status = 'ACTIVE' and w.queues <> '{}'
   and (w.queues && $1::text[] or '*' = any(w.queues) or '*' = any($1::text[]));
