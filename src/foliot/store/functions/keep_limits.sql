-- purpose: the keys of a new execution that have a limit; null if none has
-- caller: function enqueue
-- transition: none
-- fence: none
-- index: limits_pkey
--
-- A concurrency key of the execution's own takes the place of its job's, also where the two are the
-- same: a key that a row has twice would cost it two slots.
create or replace function foliot.keep_limits(p_job_keys text[], p_own_key text)
returns text[]
language plpgsql stable
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  return (select array_agg(k.key order by k.n)
            from unnest(p_job_keys || p_own_key) with ordinality k(key, n)
           where (p_own_key is null or not starts_with(k.key, 'key:')
                  or k.n > coalesce(cardinality(p_job_keys), 0))
             and exists (select from foliot.limits l where l.key = k.key));
end
$$;
