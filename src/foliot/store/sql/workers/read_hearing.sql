-- purpose: whether heartbeats can be written here, and what time it is
-- caller: store.workers
-- transition: none
-- fence: none
-- index: none
--
-- A standby answers and hears nobody.
select coalesce($1::timestamptz, statement_timestamp()) as told,
       current_setting('transaction_read_only') = 'off' as writable;
