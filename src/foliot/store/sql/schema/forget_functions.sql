-- purpose: forget functions that no file has any more, in the transaction that dropped them
-- caller: store.install_functions
-- transition: none
-- fence: name
-- index: schema_functions_pkey
delete from foliot.schema_functions where name = any($1::text[]);
