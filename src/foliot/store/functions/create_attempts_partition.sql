-- purpose: the partition of one day of history, with the day's rows out of the default partition;
--   false if those are more than p_moved_rows, and nothing is done
-- caller: sql partitions/create_day
-- transition: none
-- fence: none
-- index: none
--
-- Made aside and attached: `create table … partition of` would lock out every reader and writer of
-- the history. Attaching locks only the default partition, which nobody writes to while today has
-- its own, and gives up soon rather than make others queue behind it. Whoever creates the same day
-- at the same time waits for the first lock, and then finds the day there.
--
-- Rows never change: they are frozen by the first vacuum that comes along, and not once more later.
-- Partitions are read through their parent, with its policies; row security without a policy closes
-- the way around, whatever is granted.
create or replace function foliot.create_attempts_partition(p_day date, p_moved_rows integer)
returns boolean
language plpgsql
set lock_timeout = '1s'
as $$
declare
  partition text := 'attempts_' || to_char(p_day, 'YYYYMMDD');
  low timestamptz := p_day::timestamp at time zone 'UTC';
  high timestamptz := (p_day + 1)::timestamp at time zone 'UTC';
  stray bigint;
begin
  lock table foliot.attempts in share update exclusive mode;
  if exists (select from pg_catalog.pg_class c
              where c.relnamespace = 'foliot'::regnamespace and c.relname = partition) then
    return true;
  end if;

  perform set_config('lock_timeout', '200ms', true);
  lock table foliot.attempts_default in access exclusive mode;
  select count(*) into stray
    from (select from foliot.attempts_default a
           where a.finished_at >= low and a.finished_at < high limit p_moved_rows + 1) s;
  if stray > p_moved_rows then
    return false;
  end if;

  execute format(
    'create table foliot.%I (like foliot.attempts including all excluding indexes)
       with (autovacuum_freeze_min_age = 0, toast.autovacuum_freeze_min_age = 0)', partition);
  execute format('alter table foliot.%I enable row level security', partition);
  if stray > 0 then
    execute format(
      'with moved as (
         delete from foliot.attempts_default
          where finished_at >= $1 and finished_at < $2 returning *)
       insert into foliot.%I select * from moved', partition) using low, high;
  end if;
  execute format('alter table foliot.attempts attach partition foliot.%I for values from (%L) to (%L)',
                 partition, low, high);
  return true;
end
$$;
