-- purpose: the partition of one day of the history or of the logs; false if it has too many rows to be
--   moved
-- caller: store.partitions
-- transition: none
-- fence: none
-- index: none
select foliot.create_partition($1::text, $2::date, $3::integer);
