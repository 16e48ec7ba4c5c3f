-- purpose: those of some concurrency keys that a live execution or a job in force names
-- caller: function forget_limits
-- transition: none
-- fence: none
-- index: executions_limit_key, jobs_limit_key
--
-- A list has its concurrency key last: the widest limit comes first, and there is one of each kind.
create or replace function foliot.named_limits(p_keys text[])
returns text[]
language plpgsql stable
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  return array(
    select k.key from unnest(p_keys) k(key)
     where coalesce((select true from foliot.executions e
                      where e.limit_keys is not null
                        and e.limit_keys[cardinality(e.limit_keys)] = k.key limit 1),
                    (select true from foliot.jobs j
                      where j.limit_keys is not null and j.status <> 'DELETED'
                        and j.limit_keys[cardinality(j.limit_keys)] = k.key limit 1), false));
end
$$;
