-- purpose: what time it is, if a heartbeat and an end could be written now
-- caller: store.workers
-- transition: none
-- fence: none
-- index: none
--
-- It changes nothing and needs what they need: while somebody has locked one of their tables, or on a standby,
-- it fails like them. Of a table with partitions the parent is asked for.
with heartbeat as (update foliot.workers set started = started where false),
end_of_it as (delete from foliot.executions where false),
history as (delete from foliot.attempts where false),
letters as (delete from foliot.dead_letters where false),
told as (delete from foliot.deliveries where false),
followed as (delete from foliot.completions where false)
select coalesce($1::timestamptz, statement_timestamp()) as told;
