-- purpose: when an execution ends that nobody runs: now, or right after what history has of its last claim
-- caller: function cancel, function expire
-- transition: none
-- fence: none
-- index: attempts_identity
--
-- Its last attempt failed, or was lost, under the very fence it still has. At the same microsecond the two
-- rows would be one, and an end whose time was read before it waited for that attempt would come first.
create or replace function foliot.end_after(p_id uuid, p_fence integer, p_moment timestamptz)
returns timestamptz
language plpgsql stable
as $$
begin
  if p_fence = 0 then
    return p_moment;
  end if;
  return greatest(p_moment,
                  (select a.finished_at from foliot.attempts a
                    where a.id = p_id and a.fence = p_fence and a.finished_at >= p_moment
                    order by a.finished_at desc limit 1) + interval '1 microsecond');
end
$$;
