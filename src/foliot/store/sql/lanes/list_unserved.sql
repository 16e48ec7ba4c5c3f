-- purpose: lanes in which executions have waited for a while and that no live worker serves
-- caller: store.unserved
-- transition: none
-- fence: none
-- index: executions_claim
select queue, region, requires, target_type, handler, waiting, first_id
  from foliot.unserved($1::float8, $2::integer, $3::timestamptz);
