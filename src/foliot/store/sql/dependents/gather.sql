-- purpose: tell children of the ends of their parents, and read what is to be decided about each child
-- caller: store.completions
-- transition: none
-- fence: under the lock of the child
-- index: completions_age, completions_pair
select child_id, child_status, schedule, parent_ids, execution_ids, statuses, finished_ats, read_rows, moment
  from foliot.gather_completions($1::timestamptz, $2::integer, $3::uuid, $4::uuid[], $5::timestamptz);
