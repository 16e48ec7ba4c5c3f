-- purpose: wait for one's turn at some jobs, beside others of one's kind or alone; ends with the transaction
-- caller: function enqueue, function fire, sql jobs/lock
-- transition: none
-- fence: none
-- index: none
--
-- Locks of rows have no queue: who shares one is let in beside those that share it, past whoever waits to have it
-- alone. Sixteen clients that enqueued one job without a pause kept it from being paused for over 5 s. Here they
-- stand behind him. Taken before the rows, in the order of the jobs' ids, as those are. With more jobs than a
-- fair part of a connection's share (64) in the server's table of locks, nobody stands in line.
create or replace function foliot.lock_turns(p_job_ids uuid[], p_shared boolean)
returns void
language plpgsql
as $$
declare
  job_ids uuid[] := array(select distinct x.id from unnest(p_job_ids) x(id) order by 1);
  job_id uuid;
begin
  if cardinality(job_ids) > 32 then
    return;
  end if;
  foreach job_id in array job_ids loop
    if p_shared then
      perform pg_advisory_xact_lock_shared(24, hashtext(job_id::text));
    else
      perform pg_advisory_xact_lock(24, hashtext(job_id::text));
    end if;
  end loop;
end
$$;
