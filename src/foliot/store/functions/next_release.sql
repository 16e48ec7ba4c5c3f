-- purpose: how many seconds until the next row is due that has not been let go; null if none waits
-- caller: sql executions/read_next_release
-- transition: none
-- fence: none
-- index: executions_release
--
-- What is due at `p_after` or before is not asked about: it has been let go, or somebody holds it.
create or replace function foliot.next_release(p_after timestamptz, p_now timestamptz)
returns float8
language plpgsql stable
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  return (select extract(epoch from e.available_at - coalesce(p_now, statement_timestamp()))
            from foliot.executions e
           where e.rank is null
             and (e.status in ('PENDING', 'QUEUED', 'RETRYING') or e.hold = 'BREAKER')
             and e.available_at > p_after
           order by e.available_at limit 1);
end
$$;
