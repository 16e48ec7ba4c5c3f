-- purpose: keep a request's key, or say what the earlier request with it was answered
-- caller: function enqueue
-- transition: none
-- fence: idempotency_keys_pkey
-- index: idempotency_keys_pkey
--
-- Null says that the request is new and its answer must be written before the transaction ends. Whoever
-- comes second waits here until the first is done. One key cannot be two requests: FL422.
create or replace function foliot.remember_request(
  p_tenant_id uuid, p_route text, p_key text, p_request_hash bytea, p_now timestamptz
) returns jsonb
language plpgsql
as $$
declare
  known record;
begin
  loop
    insert into foliot.idempotency_keys (tenant_id, route, key, request_hash, created_at)
    values (p_tenant_id, p_route, p_key, p_request_hash, coalesce(p_now, statement_timestamp()))
        on conflict do nothing;
    if found then
      return null;
    end if;
    select k.request_hash, k.answer into known from foliot.idempotency_keys k
     where k.tenant_id = p_tenant_id and k.route = p_route and k.key = p_key;
    exit when found; -- or it was a day old and has just been forgotten
  end loop;
  if known.request_hash <> p_request_hash then
    raise exception 'the key was used for another request' using errcode = 'FL422';
  end if;
  return known.answer;
end
$$;
