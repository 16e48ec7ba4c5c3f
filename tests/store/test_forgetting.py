"""What nobody needs goes, a batch at a time, and nothing that somebody needs."""

import asyncio
from datetime import timedelta

import asyncpg
import pytest

from foliot.core.ids import JobId
from foliot.core.limits import job_limit, key_limit, tenant_limit
from foliot.store.admitting import put_limits
from foliot.store.database import Database
from foliot.store.enqueuing import Enqueued, Request, Wanted, enqueue
from foliot.store.forgetting import (
    Forgotten,
    forget_limits,
    forget_requests,
    forget_workers,
)
from foliot.store.statements import statement
from foliot.testing.database import DatabaseFactory, sql
from foliot.testing.rows import (
    DEFAULT_TENANT,
    NOW,
    JobRow,
    insert_rows,
    make_execution,
    make_job,
    make_worker,
)
from foliot.testing.running import make_running, until_blocked
from foliot.testing.touched import measure

DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
KEYS = sql("select key from foliot.limits order by key")
LIVE_KEYS = sql("select limit_keys from foliot.executions")
WORKERS = sql("select id from foliot.workers where capacity > 0")
REQUESTS = sql("select key from foliot.idempotency_keys order by key")
MEANWHILE = sql("select pg_advisory_xact_lock(77)")
FORGET = statement("limits/forget_unnamed")
JOB_LIMIT = job_limit(DEFAULT_TENANT, JobId(DEFAULT_TENANT), "name", 1)


def key(name: str) -> str:
    return f"key:{DEFAULT_TENANT}:{name}"


async def add_requests(database: Database, **ages: timedelta) -> None:
    rows = [
        {
            "tenant_id": DEFAULT_TENANT,
            "route": "bulk",
            "key": name,
            "request_hash": "\\x00",
            "answer": [],
            "created_at": NOW - age,
        }
        for name, age in ages.items()
    ]
    await insert_rows(database, "idempotency_keys", rows)


async def names(database: Database, listing: object = KEYS) -> list[str]:
    assert isinstance(listing, type(KEYS))
    return [row[0] for row in await database.fetch(listing)]


async def test_requests_are_forgotten_after_a_day_the_oldest_first(database: Database) -> None:
    await add_requests(database, old=2 * DAY, older=3 * DAY, day=DAY, young=DAY - SECOND)
    assert await forget_requests(database, NOW, batch=1) == 1
    assert await names(database, REQUESTS) == ["day", "old", "young"]
    assert await forget_requests(database, NOW) == 1
    assert await forget_requests(database, NOW) == 0
    assert await names(database, REQUESTS) == ["day", "young"]


async def test_a_request_whose_answer_goes_while_it_is_looked_for_is_a_new_one(
    database: Database,
) -> None:
    """The trigger forgets in the very moment between meeting the key and reading its answer."""
    await add_requests(database, same=2 * DAY)
    await database.execute(
        sql("""
create function foliot.forget_meanwhile() returns trigger language plpgsql as $$
begin
  delete from foliot.idempotency_keys where created_at < '2027-02-28';
  return null;
end $$""")
    )
    await database.execute(
        sql(
            "create trigger meanwhile after insert on foliot.idempotency_keys"
            " for each statement execute function foliot.forget_meanwhile()"
        )
    )
    job = await make_job(database)
    (answer,) = await send(database, job, None, "same")
    assert not answer.replayed
    (again,) = await send(database, job, None, "same")
    assert (again.execution_id, again.replayed) == (answer.execution_id, True)


async def test_workers_are_forgotten_a_day_after_their_last_sign(database: Database) -> None:
    silent = [
        await make_worker(database, status="DEAD", last_heartbeat_at=NOW - age)
        for age in (3 * DAY, 2 * DAY, DAY)
    ]
    living = await make_worker(database, last_heartbeat_at=NOW - 3 * DAY)
    holder = await make_worker(database, status="DEAD", last_heartbeat_at=NOW - 9 * DAY)
    await make_running(database, 1, worker_id=holder)
    assert await forget_workers(database, NOW, batch=1) == 1
    assert set(await names(database, WORKERS)) == {silent[1], silent[2], living, holder}
    assert await forget_workers(database, NOW, batch=1) == 1
    assert await forget_workers(database, NOW, batch=1) == 0
    assert set(await names(database, WORKERS)) == {silent[2], living, holder}


@pytest.mark.parametrize("status", ["PENDING", "WAITING", "QUEUED", "RUNNING", "RETRYING"])
async def test_a_key_stays_while_an_execution_names_it(database: Database, status: str) -> None:
    await put_limits(database, [key_limit(DEFAULT_TENANT, name, 1) for name in ("used", "gone")])
    await make_execution(database, status=status, limit_keys=["queue:default", key("used")])
    assert await forget_limits(database) == Forgotten(1, None)
    assert await names(database) == [key("used")]


@pytest.mark.parametrize(
    ("status", "kept"), [("ACTIVE", 1), ("PAUSED", 1), ("COMPLETED", 1), ("DELETED", 0)]
)
async def test_a_key_stays_while_a_job_in_force_defines_it(
    database: Database, status: str, kept: int
) -> None:
    await put_limits(database, [key_limit(DEFAULT_TENANT, "a", 1)])
    await make_job(database, status=status, limit_keys=[key("a")])
    assert (await forget_limits(database)).removed == 1 - kept


async def test_other_limits_stay_though_nothing_is_under_them(database: Database) -> None:
    await put_limits(database, [tenant_limit(DEFAULT_TENANT, 1), JOB_LIMIT])
    assert await forget_limits(database) == Forgotten(0, None)
    assert len(await names(database)) == 2


async def test_keys_are_walked_by_pages_also_past_those_in_use(database: Database) -> None:
    keys = ["a", "b", "c", "d", "e"]
    await put_limits(database, [key_limit(DEFAULT_TENANT, name, 1) for name in keys])
    for name in ("a", "b", "d"):
        await make_execution(database, limit_keys=[key(name)])
    first = await forget_limits(database, batch=2)
    assert first == Forgotten(0, key("b"))
    second = await forget_limits(database, first.after, batch=2)
    assert second == Forgotten(1, key("d"))
    assert await forget_limits(database, second.after, batch=2) == Forgotten(1, None)
    assert await names(database) == [key("a"), key("b"), key("d")]


async def send(
    database: Database, job: JobRow, name: str | None, request: str, most: int = 1
) -> list[Enqueued]:
    limit = None if name is None else key_limit(DEFAULT_TENANT, name, most)
    wanted = Wanted(job.job_id, concurrency=limit)
    return await enqueue(database, Request(DEFAULT_TENANT, "bulk", request, NOW), [wanted], NOW)


async def make_wait(database: Database, function: str, before: str) -> None:
    """The function stops there until whoever has taken the lock `MEANWHILE` lets it go."""
    known = sql("select pg_get_functiondef(('foliot.' || $1)::regproc)")
    found: str = await database.fetch_value(known, function)
    waiting = found.replace(before, f"perform pg_advisory_xact_lock(77);\n{before}", 1)
    assert waiting != found
    await database.execute(sql(waiting))


@pytest.mark.parametrize("known", [None, 7, 1])
async def test_a_key_that_an_enqueue_is_just_writing_stays(
    database: Database, database_url: str, known: int | None
) -> None:
    job = await make_job(database)
    if known is not None:
        await put_limits(database, [key_limit(DEFAULT_TENANT, "a", known)])
    await make_wait(database, "enqueue", "moment := coalesce(")  # its limits are said by then
    async with Database(database_url) as other, other.transaction() as session:
        await session.fetch(MEANWHILE)
        sending = asyncio.create_task(send(database, job, "a", "one"))
        await until_blocked(session)
        assert (await forget_limits(other)).removed == 0
    await sending
    assert await names(database) == [key("a")]
    assert await database.fetch_value(LIVE_KEYS) == [key("a")]


async def test_an_enqueue_that_meets_a_key_being_forgotten_writes_it_anew(
    database: Database, database_url: str
) -> None:
    job = await make_job(database)
    await put_limits(database, [key_limit(DEFAULT_TENANT, "a", 7)])
    async with Database(database_url) as other, other.transaction() as session:
        row = await session.fetch_row(FORGET, None, 10)
        assert row is not None
        assert row["removed"] == 1
        sending = asyncio.create_task(send(database, job, "a", "one"))
        await until_blocked(session)
    await sending
    assert await names(database) == [key("a")]
    assert await database.fetch_value(LIVE_KEYS) == [key("a")]


async def test_what_was_named_while_the_lock_was_had_is_seen(
    database: Database, database_url: str
) -> None:
    """The look at the rows comes after the lock: an enqueue that is over by then counts."""
    job = await make_job(database)
    await put_limits(database, [key_limit(DEFAULT_TENANT, "a", 1)])
    await make_wait(database, "forget_limits", "idle := array(")
    async with Database(database_url) as other, other.transaction() as session:
        await session.fetch(MEANWHILE)
        forgetting = asyncio.create_task(forget_limits(database))
        await until_blocked(session)
        async with Database(database_url) as third:
            await send(third, job, "a", "one")
    assert (await forgetting).removed == 0
    assert await names(database) == [key("a")]


@pytest.mark.parametrize("analyzed", ["before", "after"])
async def test_a_batch_is_found_by_an_index(server: DatabaseFactory, analyzed: str) -> None:
    """Among many, with the statistics of the empty tables and with those of the full ones."""
    address = await server.create()
    name = address.partition("@/")[2].partition("?")[0]
    db = await asyncpg.connect(server.server.url(name, "postgres"))
    try:
        if analyzed == "before":
            await db.execute("analyze")
        await db.execute(CROWD)
        if analyzed == "after":
            await db.execute("analyze")
        for forget, arguments in {
            "requests/forget_old": (NOW, 100),
            "workers/forget_dead": (100, NOW),
            "limits/forget_unnamed": (key("5"), 100),
            "jobs/cancel_deleted": (None, 100, 100, NOW),
        }.items():
            async with db.transaction():
                _, touched = await measure(db, statement(forget).sql, *arguments)
            assert not touched.scanned, forget
            assert touched.entries.total() <= 1500, forget
    finally:
        await db.close()


CROWD = """
create temporary view told as
select '00000000-0000-8000-8000-000000000001'::uuid as id, '2027-03-01T12:00Z'::timestamptz as now;
insert into foliot.idempotency_keys (tenant_id, route, key, request_hash, created_at)
select t.id, 'enqueue', n::text, '', t.now - n * interval '1 min'
  from told t, generate_series(1, 50000) n;
insert into foliot.workers (id, name, host, version, status, queues, capacity, registered_at,
                            last_heartbeat_at)
select gen_random_uuid(), 'w', 'h', '0', case n % 2 when 0 then 'DEAD' else 'ACTIVE' end, '{}', 1,
       t.now, t.now - n * interval '1 min'
  from told t, generate_series(1, 20000) n;
insert into foliot.limits (key, max_running)
select 'key:' || t.id || ':' || n, 1 from told t, generate_series(1, 20000) n;
insert into foliot.jobs (id, tenant_id, shard, status, version, schedule_version, queue, lane_id,
                         priority, overlap_policy, name, limit_keys, created_at, updated_at)
select gen_random_uuid(), t.id, 0, 'ACTIVE', 1, 1, 'default', 1, 5, 'ALLOW',
       'job-' || n, array['key:' || t.id || ':' || n], t.now, t.now
  from told t, generate_series(1, 20000) n;
insert into foliot.executions (id, tenant_id, job_id, job_version, status, trigger, queue, lane_id,
                               priority, scheduled_time, available_at, limit_keys, job_name,
                               created_at)
select gen_random_uuid(), j.tenant_id, j.id, 1, 'PENDING', 'SCHEDULE', 'default', 1, 5, t.now,
       t.now, j.limit_keys, j.name, t.now
  from told t, foliot.jobs j"""
