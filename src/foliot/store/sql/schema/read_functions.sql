-- purpose: which functions this database has, as we made them
-- caller: store.install_functions
-- transition: none
-- fence: none
-- index: schema_functions_pkey
select name, checksum, signature
  from foliot.schema_functions
 order by name;
