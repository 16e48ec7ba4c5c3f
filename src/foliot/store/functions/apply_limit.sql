-- purpose: give a limit's key to rows that came before the limit, a page at a time; what could be claimed
--   waits for a slot from now on, and what runs holds one
-- caller: sql limits/apply
-- transition: execution HOLD: QUEUED -> WAITING
-- fence: under the lock of each row
-- index: executions_pkey, executions_job
--
-- A tenant's rows are found by walking over all, in the order of their ids; a job's by its own index. Rows in
-- use by others are passed over, and `passed_over` tells that there were some: a walk must come back for them.
-- `last` is where to go on, null at the end. `keys:<job>` is no key: it stands for all that the job's rows name.
create or replace function foliot.apply_limit(p_key text, p_after uuid, p_batch integer, p_now timestamptz)
returns table (changed bigint, last uuid, passed_over boolean, queues text[])
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_custom_plan
as $$
declare
  kinds text[] := '{tenant,job,key}';
  kind text := split_part(p_key, ':', 1);
  subject uuid := split_part(p_key, ':', 2)::uuid;
  page uuid[];
begin
  if kind = 'keys' then
    return query select a.* from foliot.apply_key_limit(subject, p_batch, p_now) a;
    return;
  end if;
  page := case kind
    when 'tenant' then array(
      select e.id from foliot.executions e
       where e.id > coalesce(p_after, '00000000-0000-0000-0000-000000000000') order by e.id limit p_batch)
    else array(
      select e.id from foliot.executions e
       where e.job_id = subject and (p_key = any(e.limit_keys)) is not true
       limit p_batch for no key update skip locked) end;
  update foliot.executions e
     set limit_keys = array(select k.key from unnest(e.limit_keys || p_key) k(key)
                             order by array_position(kinds, split_part(k.key, ':', 1))),
         status = case when e.status = 'QUEUED' and e.rank is not null then 'WAITING' else e.status end,
         hold = case when e.status = 'QUEUED' and e.rank is not null then 'LIMIT' else e.hold end,
         queued_at = case when e.status = 'QUEUED' then null else e.queued_at end,
         rank = case when e.status = 'RUNNING' then e.rank end
   where e.ctid = any(array(
           select o.ctid from foliot.executions o
            where o.id = any(page) and (p_key = any(o.limit_keys)) is not true
              and (kind = 'job' or o.tenant_id is not distinct from subject)
              for no key update skip locked));
  get diagnostics changed = row_count;
  last := page[p_batch];
  passed_over := case
    when kind = 'tenant' then exists (
      select from foliot.executions e
       where e.id = any(page) and e.tenant_id = subject and (p_key = any(e.limit_keys)) is not true)
    else last is null and exists (
      select from foliot.executions e
       where e.job_id = subject and (p_key = any(e.limit_keys)) is not true) end;
  return next;
end
$$;
