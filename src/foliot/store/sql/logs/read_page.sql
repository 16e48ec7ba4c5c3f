-- purpose: lines of one execution, in the order of its attempts and of what each said
-- caller: store.logs
-- transition: none
-- fence: none
-- index: execution_logs_identity
--
-- $3: nothing was said before the execution came into being, so older days are not looked at.
select l.fence, l.attempt_number, l.seq, l.at, l.level, l.source, l.message
  from foliot.execution_logs l
 where l.execution_id = $1::uuid and l.tenant_id = $2::uuid and l.at >= $3::timestamptz
   and (l.fence, l.seq) > ($4::integer, $5::integer)
   and ($6::text[] is null or l.level = any($6::text[]))
   and ($7::text is null or strpos(lower(l.message), lower($7::text)) > 0)
   and ($8::integer is null or l.attempt_number = $8::integer)
 order by l.fence, l.seq limit $9::integer;
