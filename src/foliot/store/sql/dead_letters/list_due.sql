-- purpose: dead letters whose time to be replayed by themselves has come, the earliest first
-- caller: store.auto_replaying
-- transition: none
-- fence: none
-- index: dead_letters_due
select d.id, d.tenant_id
  from foliot.dead_letters d
 where d.replay_at <= coalesce($2::timestamptz, statement_timestamp())
   and d.replayed_at is null and d.discarded_at is null
 order by d.replay_at limit $1::integer;
