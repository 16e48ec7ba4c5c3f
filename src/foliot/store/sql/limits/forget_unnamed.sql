-- purpose: forget the concurrency keys that nothing names any more, from a place on
-- caller: store.forgetting
-- transition: none
-- fence: under the lock of each limit
-- index: limits_dynamic
select removed, last from foliot.forget_limits($1::text, $2::integer);
