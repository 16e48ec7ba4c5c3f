-- purpose: let nothing of a queue be claimed; one that is paused stays as it is
-- caller: store.queues
-- transition: none
-- fence: under the lock of the queue's claims
-- index: queues_pkey
--
-- A claim that is under way ends first: whoever is told of the pause can count on it.
insert into foliot.queues as q (name, paused_at, status_note)
select $1::text, coalesce($3::timestamptz, statement_timestamp()), $2::text
  from pg_advisory_xact_lock(21, hashtext($1::text))
    on conflict (name) do update
       set paused_at = coalesce(q.paused_at, excluded.paused_at),
           status_note = coalesce(excluded.status_note, q.status_note);
