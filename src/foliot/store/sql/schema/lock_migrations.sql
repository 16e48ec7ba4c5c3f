-- purpose: let one node migrate at a time; the lock ends with the transaction
-- caller: store.migrate
-- transition: none
-- fence: none
-- index: none
select pg_advisory_xact_lock($1::bigint);
