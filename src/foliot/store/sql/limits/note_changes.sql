-- purpose: note that keys are about to get their first limit, for the rows that wait without them
-- caller: store.limit_changes
-- transition: none
-- fence: none
-- index: limits_pkey, limit_changes_pkey
insert into foliot.limit_changes (key, changed_at)
select k.key, coalesce($2::timestamptz, statement_timestamp())
  from unnest($1::text[]) k(key)
 where not exists (select from foliot.limits l where l.key = k.key)
 order by k.key
    on conflict (key) do update set changed_at = excluded.changed_at, walked_at = null;
