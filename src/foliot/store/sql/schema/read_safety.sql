-- purpose: the defaults a new session of this role starts with, for the settings named in $1
-- caller: store.safety
-- transition: none
-- fence: none
-- index: none
select name, reset_val as value, session_user::text as role,
       current_database()::text as database
  from pg_catalog.pg_settings
 where name = any($1::text[])
 order by name;
