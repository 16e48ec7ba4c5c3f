-- purpose: open dead letters of a tenant by what they died of: how many, since when, until when, the newest
-- caller: store.dead_letters
-- transition: none
-- fence: none
-- index: dead_letters_group
select g.fingerprint, g.number, g.first_failed_at, g.last_failed_at, s.id, s.job_id, s.job_name, s.reason,
       s.error
  from (select d.fingerprint, count(*) as number, min(d.failed_at) as first_failed_at,
               max(d.failed_at) as last_failed_at
          from foliot.dead_letters d
         where d.tenant_id = $1::uuid and d.replayed_at is null and d.discarded_at is null
           and ($2::uuid is null or d.job_id = $2)
         group by d.fingerprint
        having $3::timestamptz is null or (max(d.failed_at), d.fingerprint) < ($3, $4::text)
         order by max(d.failed_at) desc, d.fingerprint desc
         limit $5::integer) g
 cross join lateral (
       select d.id, d.job_id, d.job_name, d.reason, d.error
         from foliot.dead_letters d
        where d.tenant_id = $1::uuid and d.replayed_at is null and d.discarded_at is null
          and d.fingerprint = g.fingerprint and ($2::uuid is null or d.job_id = $2)
        order by d.failed_at desc, d.id desc limit 1) s
 order by g.last_failed_at desc, g.fingerprint desc;
