-- purpose: dead letters of a tenant that fit, in the order of their failures; and where the looking ended
-- caller: sql dead_letters/list_page
-- transition: none
-- fence: none
-- index: dead_letters_open, dead_letters_job, dead_letters_group, dead_letters_closed
--
-- p_kind is OPEN, REPLAYED or DISCARDED. What no index tells is looked at row by row, at no more than p_scan
-- rows: the last one then comes once more, as one that does not fit. Planned at each call, because which
-- index is the best depends on what is asked; each has the order too.
create or replace function foliot.find_dead_letters(
  p_tenant_id uuid, p_kind text, p_job_id uuid, p_fingerprint text, p_reason text, p_error text,
  p_from timestamptz, p_to timestamptz, p_oldest_first boolean, p_at timestamptz, p_id uuid,
  p_limit integer, p_scan integer
) returns table (id uuid, fits boolean)
language plpgsql stable
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
declare
  walk refcursor;
  letter foliot.dead_letters;
  kept integer := 0;
begin
  open walk for execute
    'select d.* from foliot.dead_letters d
      where d.tenant_id = $1 and d.failed_at >= $2 and d.failed_at < $3 and '
    || case p_kind when 'OPEN' then 'd.replayed_at is null and d.discarded_at is null'
                   else '(d.replayed_at is not null or d.discarded_at is not null)' end
    || case when p_job_id is null then '' else ' and d.job_id = $4' end
    || case when p_fingerprint is null then '' else ' and d.fingerprint = $5' end
    || case when p_oldest_first then ' and (d.failed_at, d.id) > ($6, $7) order by d.failed_at, d.id'
            else ' and (d.failed_at, d.id) < ($6, $7) order by d.failed_at desc, d.id desc' end
    using p_tenant_id, coalesce(p_from, '-infinity'), coalesce(p_to, 'infinity'), p_job_id, p_fingerprint,
          coalesce(p_at, case when p_oldest_first then '-infinity' else 'infinity' end::timestamptz),
          coalesce(p_id, '00000000-0000-0000-0000-000000000000');
  for seen in 1 .. p_scan loop
    fetch walk into letter;
    exit when not found;
    id := letter.id;
    fits := (p_kind = 'OPEN' or (p_kind = 'REPLAYED') = (letter.replayed_at is not null))
            and (p_reason is null or letter.reason = p_reason)
            and (p_error is null or strpos(lower(concat_ws(' ', letter.error ->> 'type',
                                                           letter.error ->> 'message')), lower(p_error)) > 0);
    if fits then
      return next;
      kept := kept + 1;
      exit when kept = p_limit;
    end if;
    if seen = p_scan then
      fits := false;
      return next;
    end if;
  end loop;
  close walk;
end
$$;
