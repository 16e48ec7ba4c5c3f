-- purpose: the keys of a new execution that have a limit; null if none has
-- caller: function enqueue
-- transition: none
-- fence: none
-- index: limits_pkey
--
-- A concurrency key of the execution's own takes the place of its job's.
create or replace function foliot.keep_limits(p_job_keys text[], p_own_key text)
returns text[]
language plpgsql stable
set enable_seqscan = off
as $$
begin
  return (select array_agg(k.key order by k.n)
            from unnest(p_job_keys || p_own_key) with ordinality k(key, n)
           where (p_own_key is null or k.key = p_own_key or not starts_with(k.key, 'key:'))
             and exists (select from foliot.limits l where l.key = k.key));
end
$$;
