-- purpose: forget how far lanes had come long ago
-- caller: store.queue_clocks
-- transition: none
-- fence: none
-- index: queue_clocks_at, queue_clocks_pkey
--
-- Two rows of a lane are always kept: the farthest, which is its virtual time, and the newest that is
-- older than ten seconds, where claims begin. A claim that finds an older one begins lower, which is
-- slower and never wrong.
with old as materialized (
  select c.tid
    from foliot.lanes l
   cross join lateral (
         select c.at from foliot.queue_clocks c
          where c.lane_id = l.id
            and c.at < coalesce($1::timestamptz, statement_timestamp()) - interval '10 s'
          order by c.at desc limit 1) start
   cross join lateral (
         select c.virtual_time from foliot.queue_clocks c
          where c.lane_id = l.id order by c.virtual_time desc limit 1) farthest
   cross join lateral (
         select c.ctid as tid from foliot.queue_clocks c
          where c.lane_id = l.id and c.at < start.at and c.virtual_time < farthest.virtual_time
          order by c.at desc limit $2::integer
            for update skip locked) c)
delete from foliot.queue_clocks c
 where c.ctid = any(array(select o.tid from old o));
