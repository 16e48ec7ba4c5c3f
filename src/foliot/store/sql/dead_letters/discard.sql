-- purpose: somebody has decided that a dead letter stays unanswered, and why
-- caller: store.dead_letters
-- transition: none
-- fence: replayed_at is null, discarded_at is null
-- index: dead_letters_pkey
--
-- `num_nulls` is no condition of the indexes of open letters: by one of those, all of them would be read.
update foliot.dead_letters d
   set discarded_at = coalesce($4::timestamptz, statement_timestamp()), discard_reason = $3::text
 where d.id = $2::uuid and d.tenant_id = $1::uuid and num_nulls(d.replayed_at, d.discarded_at) = 2;
