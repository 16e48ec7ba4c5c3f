-- purpose: how many dead letters await a decision, up to a number, and for how long the oldest has
-- caller: store.dead_letters
-- transition: none
-- fence: none
-- index: dead_letters_oldest
select (select count(*)
          from (select from foliot.dead_letters d
                 where coalesce(d.replayed_at, d.discarded_at) is null
                 order by d.failed_at limit $1::integer) d) as depth,
       extract(epoch from coalesce($2::timestamptz, statement_timestamp())
               - (select d.failed_at from foliot.dead_letters d
                   where coalesce(d.replayed_at, d.discarded_at) is null
                   order by d.failed_at limit 1))::float8 as oldest_seconds;
