-- purpose: how long the oldest due instant, silent worker and undelivered callback have waited; null if there
--   is none, below zero if its time has not come
-- caller: store.arrears
-- transition: none
-- fence: none
-- index: jobs_due, workers_heartbeat, deliveries_due
select instant_seconds, lease_seconds, callback_seconds
  from foliot.arrears($1::uuid[], $2::float8, $3::float8, $4::float8, $5::timestamptz);
