-- purpose: the days without a partition, from yesterday to $2 days ahead, and those of rows that had
--   to go to a default partition, which is empty as a rule
-- caller: store.partitions
-- transition: none
-- fence: none
-- index: pg_class_relname_nsp_index
with today as (
  select (coalesce($1::timestamptz, statement_timestamp()) at time zone 'UTC')::date as day)
select w.parent, w.day
  from (select p.parent, today.day + n as day
          from today, generate_series(-1, $2::integer) n,
               unnest(array['attempts', 'execution_logs']) p(parent)
         union
        select 'attempts', (a.finished_at at time zone 'UTC')::date from foliot.attempts_default a
         union
        select 'execution_logs', (l.at at time zone 'UTC')::date
          from foliot.execution_logs_default l) w
 where not exists (
       select from pg_catalog.pg_class c
        where c.relnamespace = 'foliot'::regnamespace
          and c.relname = w.parent || '_' || to_char(w.day, 'YYYYMMDD'))
 order by w.day, w.parent;
