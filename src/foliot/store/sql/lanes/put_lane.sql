-- purpose: make a lane that is not there yet; many may make the same one at once
-- caller: store.lanes
-- transition: none
-- fence: none
-- index: lanes_queue_region_requires_target_type_handler_key
insert into foliot.lanes (queue, region, requires, target_type, handler)
values ($1::text, $2::text, $3::text[], $4::text, $5::text)
    on conflict do nothing;
