-- purpose: take slots back from rows that nobody is there to claim, or that a full queue has no place for; how many
-- caller: store.admitting
-- transition: execution HOLD: QUEUED -> WAITING
-- fence: worker_id is null, rank is not null
-- index: executions_slot_1
select foliot.withdraw($1::integer, $2::float8, $3::timestamptz);
