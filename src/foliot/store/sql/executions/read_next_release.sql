-- purpose: how many seconds until the next row is due that has not been let go
-- caller: store.releasing
-- transition: none
-- fence: none
-- index: executions_release
select foliot.next_release($1::timestamptz, $2::timestamptz);
