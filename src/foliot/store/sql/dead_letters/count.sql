-- purpose: how many dead letters of a tenant a list has in all
-- caller: store.dead_letters
-- transition: none
-- fence: none
-- index: dead_letters_open, dead_letters_job, dead_letters_group, dead_letters_closed
select count(*)
  from foliot.dead_letters d
 where d.tenant_id = $1::uuid
   and case $2::text when 'OPEN' then d.replayed_at is null and d.discarded_at is null
                     when 'REPLAYED' then d.replayed_at is not null
                     else d.discarded_at is not null end
   and ($3::uuid is null or d.job_id = $3)
   and ($4::text is null or d.fingerprint = $4)
   and ($5::text is null or d.reason = $5)
   and ($6::text is null
        or strpos(lower(concat_ws(' ', d.error ->> 'type', d.error ->> 'message')), lower($6)) > 0)
   and ($7::timestamptz is null or d.failed_at >= $7)
   and ($8::timestamptz is null or d.failed_at < $8);
