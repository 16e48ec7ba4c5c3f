-- purpose: executions that those whom a worker called go on with are in their hands from now on
-- caller: store.handing_over
-- transition: execution HAND_OVER: RUNNING -> RUNNING
-- fence: id, fence, worker_id
-- index: executions_pkey
select id from foliot.hand_over($1::uuid, $2::uuid, $3::uuid[], $4::integer[]) as h(id);
