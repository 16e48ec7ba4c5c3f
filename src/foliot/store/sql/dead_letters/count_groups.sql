-- purpose: how many groups the list of them has in all
-- caller: store.dead_letters
-- transition: none
-- fence: none
-- index: dead_letters_group
select count(distinct d.fingerprint)
  from foliot.dead_letters d
 where d.tenant_id = $1::uuid and d.replayed_at is null and d.discarded_at is null
   and ($2::uuid is null or d.job_id = $2);
