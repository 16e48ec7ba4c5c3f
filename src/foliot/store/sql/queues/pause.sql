-- purpose: let nothing of a queue be claimed; one that is paused stays as it is
-- caller: store.queues
-- transition: none
-- fence: none
-- index: queues_pkey
insert into foliot.queues as q (name, paused_at, status_note)
values ($1::text, coalesce($3::timestamptz, statement_timestamp()), $2::text)
    on conflict (name) do update
       set paused_at = coalesce(q.paused_at, excluded.paused_at),
           status_note = coalesce(excluded.status_note, q.status_note);
