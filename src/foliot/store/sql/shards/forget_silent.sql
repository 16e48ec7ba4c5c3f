-- purpose: forget schedulers that have been silent for a day
-- caller: store.shards
-- transition: none
-- fence: last_seen_at
-- index: none
delete from foliot.schedulers
 where last_seen_at < coalesce($1::timestamptz, statement_timestamp()) - interval '1 day';
