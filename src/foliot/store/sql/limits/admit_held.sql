-- purpose: let rows go that a limit held, as many as every one of their keys has room for
-- caller: store.admitting
-- transition: execution RELEASE: WAITING -> QUEUED
-- fence: status, hold
-- index: executions_held
select admitted, last, last_lane, opens_in, queues, cut
  from foliot.admit($1::text[], $2::integer, $3::integer, $4::integer, $5::integer, $6::integer, $7::bigint,
                    $8::timestamptz);
