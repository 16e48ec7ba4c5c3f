-- purpose: forget the concurrency keys that nothing names any more, from a place on
-- caller: sql limits/forget_unnamed
-- transition: none
-- fence: under the lock of each limit
-- index: limits_dynamic, limits_pkey
--
-- A row that runs under a key without a limit would run unlimited, so a key is forgotten only if nothing
-- names it once its row is locked, in a statement that begins after the lock was had. Whoever is about to
-- name it holds that lock until his rows can be seen, and is passed over; or he waits for ours and writes
-- the limit anew. `last` is where to go on, null at the end. Without bitmaps the index is walked in its
-- order and no farther than the page.
create or replace function foliot.forget_limits(p_after text, p_batch integer)
returns table (removed bigint, last text)
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  page text[];
  named text[];
  idle text[];
begin
  page := array(select l.key from foliot.limits l
                 where starts_with(l.key, 'key:') and l.key collate "C" > coalesce(p_after, '')
                 order by l.key collate "C" limit p_batch);
  named := foliot.named_limits(page);
  idle := array(select l.key from foliot.limits l
                 where l.key = any(page) and l.key <> all(named)
                   for update skip locked);
  named := foliot.named_limits(idle);
  delete from foliot.limits l where l.key = any(idle) and l.key <> all(named);
  get diagnostics removed = row_count;
  last := page[p_batch];
  return next;
end
$$;
