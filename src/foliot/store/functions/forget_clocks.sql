-- purpose: forget how far lanes had come long ago; how many marks went
-- caller: sql queues/forget_clocks
-- transition: none
-- fence: none
-- index: queue_clocks_at, queue_clocks_pkey
--
-- Two rows of a lane are always kept: the farthest, which is its virtual time, and the newest that is
-- older than ten seconds, where claims begin. A claim that finds an older one begins lower, which is
-- slower and never wrong. Without bitmaps a lane's marks are walked in their order, no farther than the batch.
create or replace function foliot.forget_clocks(p_now timestamptz, p_batch integer)
returns bigint
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  removed bigint;
begin
  with old as materialized (
    select c.tid
      from foliot.lanes l
     cross join lateral (
           select c.at from foliot.queue_clocks c
            where c.lane_id = l.id
              and c.at < coalesce(p_now, statement_timestamp()) - interval '10 s'
            order by c.at desc limit 1) start
     cross join lateral (
           select c.virtual_time from foliot.queue_clocks c
            where c.lane_id = l.id order by c.virtual_time desc limit 1) farthest
     cross join lateral (
           select c.ctid as tid from foliot.queue_clocks c
            where c.lane_id = l.id and c.at < start.at and c.virtual_time < farthest.virtual_time
            order by c.at desc limit p_batch
              for update skip locked) c
     limit p_batch)
  delete from foliot.queue_clocks c
   where c.ctid = any(array(select o.tid from old o));
  get diagnostics removed = row_count;
  return removed;
end
$$;
