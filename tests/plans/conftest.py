"""A crowded database, built once: 200,000 jobs and as many live and finished executions.

`empty` has the statistics of the empty tables, as an idle queue leaves them; `full` has those of
a crowd that waits for its first worker, and so of a table in which nothing runs. A test works in
one transaction that is undone.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Final
from urllib.parse import urlsplit

import asyncpg
import pytest
import pytest_asyncio

from foliot.testing.database import DatabaseFactory
from foliot.testing.rows import DEFAULT_TENANT, NOW

CROWD: Final = 200_000

FULL: Final = "crowd_full"
SUPERUSER: Final = "postgres"

# Instants are a second apart; the first 1,000 are due at NOW.
FILL_JOBS: Final = """
insert into foliot.jobs (id, tenant_id, shard, status, version, schedule_version, next_instant,
                         next_run_at, queue, lane_id, priority, overlap_policy, name, created_at,
                         updated_at)
select gen_random_uuid(), $1, n % 64, 'ACTIVE', 1, 1, d.at, d.at, 'default', 1, 5,
       (array['SKIP', 'ALLOW', 'QUEUE_ONE', 'QUEUE_ALL'])[1 + n % 4], 'job-' || n, $2, $2
  from generate_series(1, $3::integer) n
 cross join lateral (select $2::timestamptz + (n - 1000) * interval '1 s') d(at)"""

FILL_VERSIONS: Final = """
insert into foliot.job_versions (job_id, tenant_id, version, schedule_version, status, definition,
                                 changed_by, valid_from)
select j.id, j.tenant_id, 1, 1, 'ACTIVE', '{"schedule": {"type": "MANUAL"}}', 'test', j.created_at
  from foliot.jobs j"""

# Half of them in the future; of the others, some of every kind of waiting and running.
FILL_EXECUTIONS: Final = """
insert into foliot.executions (id, tenant_id, job_id, job_version, status, trigger, queue, lane_id,
                               priority, rank, scheduled_time, available_at, queued_at, fence,
                               attempt_number, worker_id, claimed_at, limit_keys, hold, start_by,
                               job_name, created_at)
select gen_random_uuid(), j.tenant_id, j.id, 1, k.status, 'SCHEDULE', 'default', 1, 5,
       case when k.status in ('QUEUED', 'RUNNING') then j.n end, j.next_instant,
       t.now + case k.kind when 'future' then j.n else -60 end * interval '1 s', t.now,
       (k.status = 'RUNNING')::integer, (k.status = 'RUNNING')::integer,
       case k.kind when 'running' then w.busy when 'lost' then w.dead end,
       case k.status when 'RUNNING' then t.now end,
       case k.kind when 'limited' then array['queue:default'] end,
       case k.kind when 'limited' then 'LIMIT' when 'overlap' then 'OVERLAP' end,
       case k.kind when 'late' then t.now - interval '1 s' end, j.name, t.now
  from (select j.*, substr(j.name, 5)::integer as n from foliot.jobs j) j
 cross join (select $1::timestamptz as now) t
 cross join (select (select id from foliot.workers where name = 'busy') as busy,
                    (select id from foliot.workers where name = 'dead') as dead) w
 cross join lateral (
       select case when j.n <= 1000 then null when j.n <= 40000 then 'queued'
                   when j.n <= 60000 then 'running' when j.n <= 70000 then 'lost'
                   when j.n <= 80000 then 'due' when j.n <= 90000 then 'limited'
                   when j.n <= 95000 then 'overlap' when j.n <= 100000 then 'late'
                   else 'future' end as kind) s
 cross join lateral (
       select s.kind, case s.kind when 'queued' then 'QUEUED' when 'running' then 'RUNNING'
                                  when 'lost' then 'RUNNING' when 'limited' then 'WAITING'
                                  when 'overlap' then 'WAITING' else 'PENDING' end as status) k
 where (s.kind in ('running', 'lost')) = $2::boolean"""

FILL_HISTORY: Final = """
insert into foliot.attempts
select a.* from (select e, row_number() over () as n from foliot.executions e) x
 cross join lateral foliot.as_attempt(
         x.e, 'SUCCEEDED', true, $1::timestamptz - x.n * interval '1 s', null, null, false, null,
         null) a"""

FILL_SKIPS: Final = """
insert into foliot.skips (job_id, tenant_id, schedule_version, from_instant, to_instant, count,
                          reason, recorded_at)
select j.id, j.tenant_id, 1, $1::timestamptz - interval '9 days', $1 - interval '8 days', 2,
       'PAUSED', $1
  from foliot.jobs j"""

WORKERS: Final = """
insert into foliot.workers (id, name, host, version, status, queues, capacity, registered_at,
                            last_heartbeat_at)
select gen_random_uuid(), w.name, 'test', '0', w.status, '{default}', 100, $1, $1
  from (values ('busy', 'ACTIVE'), ('dead', 'DEAD')) w(name, status)"""

LANE: Final = """
insert into foliot.lanes (queue, target_type, handler) values ('default', 'HANDLER', 'work')"""
LIMIT: Final = "insert into foliot.limits (key, max_running) values ('queue:default', 1000000)"

FILL: Final[tuple[tuple[str, tuple[object, ...]], ...]] = (
    (LANE, ()),
    (LIMIT, ()),
    (WORKERS, (NOW,)),
    (FILL_JOBS, (DEFAULT_TENANT, NOW, CROWD)),
    (FILL_VERSIONS, ()),
    (FILL_EXECUTIONS, (NOW, False)),
    (FILL_HISTORY, (NOW,)),
    (FILL_SKIPS, (NOW,)),
)


async def build(server: DatabaseFactory) -> dict[str, str]:
    """By statistics, the URLs of the two; as the superuser, whom no time limit stops."""
    empty = urlsplit(await server.create()).path.removeprefix("/")
    urls = {
        "empty": server.server.url(empty, SUPERUSER),
        "full": server.server.url(FULL, SUPERUSER),
    }
    db = await asyncpg.connect(urls["empty"])
    await db.execute("analyze")
    for script, arguments in FILL:
        await db.execute(script, *arguments)
    await db.close()
    admin = await asyncpg.connect(server.admin_url)
    await admin.execute(f"create database {FULL} template {empty} strategy file_copy")
    await admin.close()
    for name, url in urls.items():
        db = await asyncpg.connect(url)
        if name == "full":
            await db.execute("analyze")
        await db.execute(FILL_EXECUTIONS, NOW, True)
        await db.close()
    return urls


@pytest.fixture(scope="session")
def crowded_urls(server: DatabaseFactory) -> Iterator[dict[str, str]]:
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        yield runner.run(build(server))


@pytest_asyncio.fixture(params=["empty", "full"])
async def crowd(
    request: pytest.FixtureRequest, crowded_urls: dict[str, str]
) -> AsyncIterator[asyncpg.Connection]:
    """A session in the crowded database, in a transaction that is undone."""
    db = await asyncpg.connect(crowded_urls[request.param])
    transaction = db.transaction()
    await transaction.start()
    try:
        yield db
    finally:
        await transaction.rollback()
        await db.close()
