-- purpose: let a queue be claimed from again
-- caller: store.queues
-- transition: none
-- fence: none
-- index: queues_pkey
update foliot.queues q set paused_at = null, status_note = $2::text where q.name = $1::text;
