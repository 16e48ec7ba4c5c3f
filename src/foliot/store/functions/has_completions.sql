-- purpose: whether any end waits to be told to a child, and what time it is
-- caller: sql dependents/read_news
-- transition: none
-- fence: none
-- index: completions_age
create or replace function foliot.has_completions(p_low timestamptz, p_now timestamptz)
returns table (news boolean, moment timestamptz)
language plpgsql stable
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  return query
  select exists (select from foliot.completions c where c.finished_at >= coalesce(p_low, '-infinity')),
         coalesce(p_now, statement_timestamp());
end
$$;
