-- purpose: forget the starts that no rate looks back to any more, key by key from a place on
-- caller: sql limits/forget_starts
-- transition: none
-- fence: none
-- index: rate_starts_key, limits_pkey
--
-- A key without a rate has all of its starts forgotten. `last` is where to go on, null at the end; a key of
-- which a whole batch went is met again.
create or replace function foliot.forget_starts(p_after text, p_batch integer, p_now timestamptz)
returns table (removed bigint, last text)
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  moment timestamptz := coalesce(p_now, statement_timestamp());
  place text := coalesce(p_after, '');
  left_over bigint := p_batch;
  gone bigint;
begin
  removed := 0;
  for step in 1 .. p_batch loop
    last := place;
    place := (select s.key from foliot.rate_starts s where s.key > place order by s.key limit 1);
    if place is null then
      last := null;
      exit;
    end if;
    delete from foliot.rate_starts s
     where s.ctid = any(array(
             select o.ctid from foliot.rate_starts o
              where o.key = place
                and o.at <= coalesce(moment - (select make_interval(secs => l.rate_seconds)
                                                 from foliot.limits l where l.key = place), 'infinity')
              order by o.at limit left_over for update skip locked));
    get diagnostics gone = row_count;
    removed := removed + gone;
    left_over := left_over - gone;
    exit when left_over <= 0;
  end loop;
  return next;
end
$$;
