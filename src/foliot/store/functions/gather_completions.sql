-- purpose: tell children of the ends of their parents, and read what is to be decided about each child
-- caller: sql dependents/gather
-- transition: none
-- fence: under the lock of the child
-- index: completions_age, completions_pair, jobs_pkey, job_parents_child, job_versions_pkey
--
-- The children of a page of completions, or the one child that is named; a child that somebody holds is
-- passed over and found by the next pass. Of each parent the newest end is kept with the child's row about
-- it. An end whose number is below a told one was over before that one, and has no say any more. All that
-- follows in the transaction is under the child's lock: nothing is told or fired twice. The page itself is
-- gone then; what else is older goes with later pages. `read_rows`: how many the page had. `p_except` are
-- children that the database would not fire a moment ago: their ends wait.
create or replace function foliot.gather_completions(
  p_low timestamptz, p_rows integer, p_child_id uuid, p_except uuid[], p_now timestamptz
) returns table (
  child_id uuid, child_status text, schedule text, parent_ids uuid[], execution_ids uuid[],
  statuses text[], finished_ats timestamptz[], read_rows integer, moment timestamptz
)
language plpgsql rows 100
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  numbers bigint[];
  children uuid[];
begin
  with page as materialized (
    select c.number, c.child_id from foliot.completions c
     where p_child_id is null and c.finished_at >= coalesce(p_low, '-infinity')
       and c.child_id <> all(p_except)
     order by c.finished_at limit p_rows)
  select array_agg(p.number), array_agg(distinct p.child_id) into numbers, children from page p;
  children := array(select j.id from foliot.jobs j where j.id = any(coalesce(children, array[p_child_id]))
                     order by j.id for no key update skip locked);

  with newest as materialized (
    select p.ctid as tid, c.*
      from unnest(children) x(child_id)
     cross join lateral (select p.ctid, p.parent_id, p.last_number from foliot.job_parents p
                          where p.child_id = x.child_id offset 0) p
     cross join lateral (select c.number, c.execution_id, c.finished_at, c.status
                           from foliot.completions c
                          where c.child_id = x.child_id and c.parent_id = p.parent_id
                            and c.number > p.last_number
                          order by c.number desc limit 1) c)
  update foliot.job_parents p
     set last_number = n.number, execution_id = n.execution_id, finished_at = n.finished_at, status = n.status
    from newest n where p.ctid = n.tid;
  delete from foliot.completions c where c.number = any(numbers) and c.child_id = any(children);

  return query
  select j.id, j.status, (v.definition -> 'schedule')::text, e.parent_ids, e.execution_ids,
         e.statuses, e.finished_ats, coalesce(cardinality(numbers), 0), coalesce(p_now, clock_timestamp())
    from unnest(children) x(child_id)
   cross join lateral (select j.id, j.status, j.version from foliot.jobs j
                        where j.id = x.child_id offset 0) j
   cross join lateral (select v.definition from foliot.job_versions v
                        where v.job_id = j.id and v.version = j.version offset 0) v
   cross join lateral (
         select array_agg(p.parent_id) as parent_ids, array_agg(p.execution_id) as execution_ids,
                array_agg(p.status) as statuses, array_agg(p.finished_at) as finished_ats
           from foliot.job_parents p
          where p.child_id = x.child_id and p.execution_id is not null) e;
end
$$;
