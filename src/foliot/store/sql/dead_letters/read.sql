-- purpose: one dead letter, whole
-- caller: store.dead_letters
-- transition: none
-- fence: none
-- index: dead_letters_pkey
select d.id, d.job_id, d.job_version, d.job_name, d.reason, d.fingerprint, d.scheduled_time, d.failed_at,
       d.payload, false as payload_omitted, d.total_attempts, d.error, d.replay_at, d.replayed_as,
       d.replayed_at, d.discarded_at, d.discard_reason
  from foliot.dead_letters d
 where d.id = $2::uuid and d.tenant_id = $1::uuid;
