-- purpose: dead letters that will not be replayed by themselves after all: somebody must ask
-- caller: store.auto_replaying
-- transition: none
-- fence: none
-- index: dead_letters_pkey
update foliot.dead_letters d
   set replay_at = null
 where d.id = any($1::uuid[]);
