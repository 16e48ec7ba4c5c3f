-- purpose: the statements that drop every function of these names, whatever its arguments
-- caller: store.install_functions
-- transition: none
-- fence: none
-- index: pg_proc_proname_args_nsp_index
select p.proname as name,
       format('drop function foliot.%I(%s)', p.proname, pg_get_function_identity_arguments(p.oid))
         as script
  from pg_catalog.pg_proc p
  join pg_catalog.pg_namespace n on n.oid = p.pronamespace
 where n.nspname = 'foliot' and p.proname = any($1::text[])
 order by p.oid;
