-- purpose: forget the starts that no rate looks back to any more, from a place on
-- caller: store.forgetting
-- transition: none
-- fence: none
-- index: rate_starts_key
select removed, last from foliot.forget_starts($1::text, $2::integer, $3::timestamptz);
