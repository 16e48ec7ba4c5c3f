-- purpose: what time it is for the database
-- caller: store.server_clock
-- transition: none
-- fence: none
-- index: none
select coalesce($1::timestamptz, statement_timestamp());
