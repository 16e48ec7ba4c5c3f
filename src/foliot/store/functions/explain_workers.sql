-- purpose: the live workers that would claim for a tenant: what they serve, how many are alike, and how much
--   of what they can run at once they do; how many others are silent or drain
-- caller: function explain
-- transition: none
-- fence: none
-- index: workers_heartbeat, executions_worker
--
-- Of each worker no more is counted than it has places; what it holds beyond them waits within it.
create or replace function foliot.explain_workers(
  p_tenant_id uuid, p_silent_seconds float8, p_moment timestamptz
) returns jsonb
language plpgsql stable
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  return (
    with ours as materialized (
      select w.*, w.last_heartbeat_at > p_moment - make_interval(secs => p_silent_seconds) as heard
        from foliot.workers w
       where w.status <> 'DEAD' and w.last_heartbeat_at >= '-infinity' and w.capacity > 0
         and (w.tenant_id is null or w.tenant_id = p_tenant_id)
       order by w.last_heartbeat_at desc limit 1000),
    alike as (
      select w.queues, w.region, w.labels, w.target_types, w.handlers, count(*) as number,
             sum(w.capacity) as capacity,
             sum((select count(*) from (select from foliot.executions e
                                         where e.worker_id = w.id limit w.capacity) h)) as in_use
        from ours w where w.heard and w.status = 'ACTIVE'
       group by 1, 2, 3, 4, 5 order by count(*) desc limit 100)
    select jsonb_build_object(
             'live', (select coalesce(jsonb_agg(to_jsonb(a)), '[]') from alike a),
             'silent', count(*) filter (where not w.heard and w.status = 'ACTIVE'),
             'draining', count(*) filter (where w.heard and w.status = 'DRAINING'))
      from ours w);
end
$$;
