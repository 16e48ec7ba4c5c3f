-- purpose: let one transaction at a time give out the slots of a limit; ends with the transaction
-- caller: function admit
-- transition: none
-- fence: none
-- index: none
--
-- The keys are taken in order, so no two wait for each other. Two keys with one hash share a lock, which
-- costs a wait and nothing else.
create or replace function foliot.lock_limits(p_keys text[])
returns void
language plpgsql
as $$
declare
  key integer;
begin
  for key in select distinct hashtext(k.key) from unnest(p_keys) k(key) order by 1 loop
    perform pg_advisory_xact_lock(22, key);
  end loop;
end
$$;
