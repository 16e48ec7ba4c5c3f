-- purpose: what is known about why an execution does not run, or where it runs; null if it is not live
-- caller: store.explaining
-- transition: none
-- fence: none
-- index: executions_pkey
select foliot.explain($1::uuid, $2::uuid, $3::timestamptz, $4::float8, $5::float8, $6::integer,
                      $7::timestamptz);
