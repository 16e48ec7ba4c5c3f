-- purpose: the partition of one day of the history or of the logs, with the day's rows out of the
--   default partition; false if those are more than p_moved_rows, and nothing is done
-- caller: sql partitions/create_day
-- transition: none
-- fence: none
-- index: none
--
-- Made aside and attached: `create table … partition of` would lock out every reader and writer of
-- the parent. Attaching locks only the default partition, which nobody writes to while today has
-- its own, and gives up soon rather than make others queue behind it. Whoever creates the same day
-- at the same time waits for the first lock, and then finds the day there.
--
-- Rows never change: they are frozen by the first vacuum that comes along, and not once more later.
-- Partitions are read through their parent, with its policies; row security without a policy closes
-- the way around, whatever is granted.
create or replace function foliot.create_partition(
  p_parent text, p_day date, p_moved_rows integer
) returns boolean
language plpgsql
set lock_timeout = '1s'
as $$
declare
  partition text := p_parent || '_' || to_char(p_day, 'YYYYMMDD');
  others text := p_parent || '_default';
  moment text := case p_parent when 'attempts' then 'finished_at' when 'execution_logs' then 'at' end;
  low timestamptz := p_day::timestamp at time zone 'UTC';
  high timestamptz := (p_day + 1)::timestamp at time zone 'UTC';
  stray bigint;
begin
  execute format('lock table foliot.%I in share update exclusive mode', p_parent);
  if exists (select from pg_catalog.pg_class c
              where c.relnamespace = 'foliot'::regnamespace and c.relname = partition) then
    return true;
  end if;

  perform set_config('lock_timeout', '200ms', true);
  execute format('lock table foliot.%I in access exclusive mode', others);
  execute format(
    'select count(*) from (select from foliot.%1$I s
                            where s.%2$I >= $1 and s.%2$I < $2 limit $3 + 1) s', others, moment)
     into stray using low, high, p_moved_rows;
  if stray > p_moved_rows then
    return false;
  end if;

  execute format(
    'create table foliot.%I (like foliot.%I including all excluding indexes)
       with (autovacuum_freeze_min_age = 0, toast.autovacuum_freeze_min_age = 0)', partition, p_parent);
  execute format('alter table foliot.%I enable row level security', partition);
  if stray > 0 then
    execute format(
      'with moved as (
         delete from foliot.%1$I where %2$I >= $1 and %2$I < $2 returning *)
       insert into foliot.%3$I select * from moved', others, moment, partition) using low, high;
  end if;
  execute format('alter table foliot.%I attach partition foliot.%I for values from (%L) to (%L)',
                 p_parent, partition, low, high);
  return true;
end
$$;
