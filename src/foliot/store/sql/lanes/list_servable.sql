-- purpose: the lanes that a worker can serve: its queues (`*`: every one), its region or none, no label
--   that it lacks, a type of target that it runs, a handler that it knows
-- caller: store.lanes
-- transition: none
-- fence: none
-- index: none
select l.id, l.queue
  from foliot.lanes l
 where (l.queue = any($1::text[]) or '*' = any($1::text[]))
   and (l.region is null or l.region = $2::text)
   and l.requires <@ $3::text[]
   and l.target_type = any($5::text[]) and (l.handler is null or l.handler = any($4::text[]))
 order by l.queue, l.id;
