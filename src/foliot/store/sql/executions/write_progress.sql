-- purpose: how far attempts under way have come, as their handlers say
-- caller: store.progress
-- transition: none
-- fence: id, fence, worker_id
-- index: executions_pkey
--
-- No column that an index has: the new version of a row stays on its page. A row that somebody else
-- has in hand is passed over: the next word about it comes within a second.
update foliot.executions e
   set progress = ($4::text[])[array_position($2::uuid[], e.id)]::jsonb
 where e.ctid = any(array(
       select x.tid
         from unnest($2::uuid[], $3::integer[]) p(id, fence)
        cross join lateral (
              select e.ctid as tid from foliot.executions e
               where e.id = p.id and e.fence = p.fence
                 and e.worker_id is not distinct from $1::uuid
                 for no key update skip locked) x));
