-- purpose: a page of a tenant's dead letters, by the time of their failure; and where the looking ended
-- caller: store.dead_letters
-- transition: none
-- fence: none
-- index: dead_letters_open, dead_letters_job, dead_letters_group, dead_letters_closed, dead_letters_pkey
--
-- A large payload is left out: a page of them would be a gigabyte.
select f.fits, d.id, d.job_id, d.job_version, d.job_name, d.reason, d.fingerprint, d.scheduled_time,
       d.failed_at, case when s.is_small then d.payload end as payload,
       d.payload is not null and not s.is_small as payload_omitted, d.total_attempts, d.error, d.replay_at,
       d.replayed_as, d.replayed_at, d.discarded_at, d.discard_reason
  from foliot.find_dead_letters($1::uuid, $2::text, $3::uuid, $4::text, $5::text, $6::text, $7::timestamptz,
                                $8::timestamptz, $9::boolean, $10::timestamptz, $11::uuid, $12::integer,
                                $13::integer) with ordinality f(id, fits, n)
 cross join lateral (
       select d.* from foliot.dead_letters d where d.id = f.id and d.tenant_id = $1::uuid offset 0) d
 cross join lateral (
       select pg_column_size(d.payload) <= 8192 and octet_length(d.payload::text) <= 8192 as is_small) s
 order by f.n;
