-- purpose: how many lines of one execution a list has in all
-- caller: store.logs
-- transition: none
-- fence: none
-- index: execution_logs_identity
--
-- $3: nothing was said before the execution came into being, so older days are not looked at.
select count(*)
  from foliot.execution_logs l
 where l.execution_id = $1::uuid and l.tenant_id = $2::uuid and l.at >= $3::timestamptz
   and ($4::text[] is null or l.level = any($4::text[]))
   and ($5::text is null or strpos(lower(l.message), lower($5::text)) > 0)
   and ($6::integer is null or l.attempt_number = $6::integer);
