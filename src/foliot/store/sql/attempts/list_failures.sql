-- purpose: when the earlier attempts of an execution failed, as far back as a poison window reaches
-- caller: store.failed_attempts
-- transition: none
-- fence: none
-- index: attempts_identity
--
-- `concat` is no condition of the index of failures: by it, everybody's within the window would be read.
select a.finished_at, t.now
  from (select coalesce($3::timestamptz, statement_timestamp()) as now) t
  left join lateral (
       select a.finished_at from foliot.attempts a
        where a.id = $1::uuid and concat(a.status) in ('FAILED', 'TIMED_OUT')
          and a.finished_at > coalesce($3::timestamptz, statement_timestamp())
                              - make_interval(secs => $2::float8)
        order by a.fence) a on true;
