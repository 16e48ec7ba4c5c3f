-- purpose: the partition of one day of history; false if it has too many rows to be moved
-- caller: store.partitions
-- transition: none
-- fence: none
-- index: none
select foliot.create_attempts_partition($1::date, $2::integer);
