-- purpose: tell whoever listens that something may have changed; a hint, which may be lost
-- caller: store.hints
-- transition: none
-- fence: none
-- index: none
--
-- In a transaction of its own, which writes no row and so waits for no disk while it holds the lock that
-- all notifications of a server share.
select pg_notify($1::text, $2::text);
