-- purpose: the concurrency key among the limits of an execution, or null
-- caller: function apply_key_limit, function as_attempt, function as_dead_letter
-- transition: none
-- fence: none
-- index: none
--
-- A list has it last, where it has one: the widest limit comes first.
-- Plain SQL in one SELECT, so that it is inlined.
create or replace function foliot.concurrency_key(p_limit_keys text[])
returns text
language sql immutable
as $$
  select case when starts_with(p_limit_keys[cardinality(p_limit_keys)], 'key:')
              then p_limit_keys[cardinality(p_limit_keys)] end
$$;
