-- purpose: the number of a lane, if it is there
-- caller: store.lanes
-- transition: none
-- fence: none
-- index: lanes_queue_region_requires_target_type_handler_key
select l.id
  from foliot.lanes l
 where l.queue = $1::text and l.region is not distinct from $2::text and l.requires = $3::text[]
   and l.target_type = $4::text and l.handler is not distinct from $5::text;
