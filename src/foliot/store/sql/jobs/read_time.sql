-- purpose: what time it is for a job that is being made
-- caller: store.jobs
-- transition: none
-- fence: none
-- index: none
select coalesce($1::timestamptz, statement_timestamp());
