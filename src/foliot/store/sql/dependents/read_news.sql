-- purpose: whether any end waits to be told to a child, and what time it is
-- caller: store.completions
-- transition: none
-- fence: none
-- index: completions_age
select news, moment from foliot.has_completions($1::timestamptz, $2::timestamptz);
