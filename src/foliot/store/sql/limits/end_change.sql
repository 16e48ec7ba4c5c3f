-- purpose: a walk for a limit is over; if it was the last, nothing is left to do for it
-- caller: store.limit_changes
-- transition: none
-- fence: changed_at
-- index: limit_changes_pkey
with walked as (
  update foliot.limit_changes c set walked_at = coalesce($4::timestamptz, statement_timestamp())
   where c.key = $1::text and c.changed_at = $2::timestamptz and not $3::boolean)
delete from foliot.limit_changes c
 where c.key = $1::text and c.changed_at = $2::timestamptz and $3::boolean;
