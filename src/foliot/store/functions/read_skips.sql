-- purpose: a page of each job's skip records, in the order of their instants
-- caller: sql ledger/read_skips
-- transition: none
-- fence: none
-- index: skips_pkey
--
-- A page begins after an instant; the first one (null) with the record that p_low may lie in.
create or replace function foliot.read_skips(
  p_job_ids uuid[], p_after timestamptz[], p_low timestamptz, p_limit integer
) returns table (
  job_id uuid, schedule_version integer, from_instant timestamptz, to_instant timestamptz, count bigint,
  reason text
)
language plpgsql stable rows 1000
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  return query
  select w.job_id, s.schedule_version, s.from_instant, s.to_instant, s.count, s.reason
    from unnest(p_job_ids, p_after) w(job_id, after)
   cross join lateral (
         select coalesce(w.after, (select k.from_instant - interval '1 microsecond' from foliot.skips k
                                    where k.job_id = w.job_id and k.from_instant <= p_low
                                    order by k.from_instant desc limit 1), p_low, '-infinity') as instant
         offset 0) low
   cross join lateral (
         select s.* from foliot.skips s
          where s.job_id = w.job_id and s.from_instant > low.instant
          order by s.from_instant limit p_limit) s;
end
$$;
