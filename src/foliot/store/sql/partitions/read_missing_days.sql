-- purpose: the days without a partition, from yesterday to $2 days ahead, and those of rows that had
--   to go to the default partition, which is empty as a rule
-- caller: store.partitions
-- transition: none
-- fence: none
-- index: pg_class_relname_nsp_index
with today as (
  select (coalesce($1::timestamptz, statement_timestamp()) at time zone 'UTC')::date as day)
select w.day
  from (select today.day + n as day from today, generate_series(-1, $2::integer) n
         union
        select (a.finished_at at time zone 'UTC')::date from foliot.attempts_default a) w
 where not exists (
       select from pg_catalog.pg_class c
        where c.relnamespace = 'foliot'::regnamespace
          and c.relname = 'attempts_' || to_char(w.day, 'YYYYMMDD'))
 order by w.day;
