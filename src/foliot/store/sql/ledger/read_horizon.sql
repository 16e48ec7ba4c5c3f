-- purpose: what time it is, and since when the history is whole: null if no day of it was ever dropped
-- caller: store.ledger_rows
-- transition: none
-- fence: none
-- index: schema_migrations_pkey, pg_class_relname_nsp_index
--
-- Days are made ahead from the day before the schema was made. If the oldest there is is younger than that, older
-- ones are gone. An execution ends after its instant, so from that day on no outcome is missing.
select coalesce($1::timestamptz, statement_timestamp()) as now,
       case when d.oldest > (m.made at time zone 'UTC')::date
            then d.oldest::timestamp at time zone 'UTC' end as horizon
  from (select min(applied_at) as made from foliot.schema_migrations) m
 cross join (select min(to_date(right(c.relname, 8), 'YYYYMMDD')) as oldest
               from pg_catalog.pg_class c
              where c.relnamespace = 'foliot'::regnamespace and c.relname ~ '^attempts_[0-9]{8}$') d;
