-- purpose: how many queues there are
-- caller: store.queues
-- transition: none
-- fence: none
-- index: none
select count(*)
  from (select l.queue from foliot.lanes l union select q.name from foliot.queues q) names;
