"""The statements stay fast: on a crowd of rows, whatever the statistics say, a call reads a number
of rows and pages that depends on the call alone. No table is read from end to end.

Three sessions call each of them. For `fresh`, statistics were taken in a crowd that waits for its
first worker, so they know of nothing that runs. For `stale`, they were taken on empty tables, as an
idle queue leaves them. `warm` has plans that are as old, besides: it keeps the generic ones that it
made when the tables had a handful of rows. The other two make theirs in the crowd, an own one for
each of the first five calls and then the generic one.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

import asyncpg
import pytest
import pytest_asyncio

from foliot.store.statements import every_statement, statement
from foliot.testing import hot_arguments as hot
from foliot.testing.cold_statements import COLD
from foliot.testing.crowd import (
    FIRST,
    HANDFUL,
    Batch,
    fill_handful,
    fill_running,
    fill_waiting,
    id_of,
)
from foliot.testing.database import DatabaseFactory
from foliot.testing.hot_arguments import DAY, constantly, of_a_job
from foliot.testing.hot_calls import BATCH, DEAD_LETTERS, Hot
from foliot.testing.rows import DEFAULT_TENANT, NOW
from foliot.testing.touched import Touched, measure

# All of them share the databases and a session, and so the loop.
together = pytest.mark.asyncio(loop_scope="module")

CALLS: Final = 7
EARLIER: Final = NOW - timedelta(seconds=500)
LOWEST: Final = UUID(int=0)
LANE: Final[tuple[object, ...]] = ("default", None, [], "HANDLER", "work")
FIRST_EXECUTION: Final = id_of(f"execution-{FIRST['queued']}")
CALENDAR: Final = (DEFAULT_TENANT, "holidays")
REQUEST: Final = (DEFAULT_TENANT, "POST /v1/jobs", "new")
CHANGE: Final = ("test", None, NOW)

QUEUE_UP: Final = """
insert into foliot.executions (id, tenant_id, job_id, job_version, status, trigger, queue, lane_id,
                               priority, scheduled_time, available_at, hold, job_name, created_at)
select gen_random_uuid(), e.tenant_id, e.job_id, 1, e.status, e.trigger, e.queue, e.lane_id, 5,
       e.scheduled_time + n * interval '1 s', e.available_at, e.hold, e.job_name, e.created_at
  from foliot.executions e, generate_series(1, $2::integer) n where e.job_id = $1"""

# Few rows, however many jobs there are: one for each queue, and for each lane of it; and 64 shards.
SMALL: Final = {"queues", "lanes", "shard_leases"}


# By statement, and after a space what is special about the call.
HOT: Final = {
    "attempts/list_failures": Hot(constantly(FIRST_EXECUTION, 3600.0, NOW), 1, 20, 400),
    "calendars/find": Hot(constantly(*CALENDAR), 1, 20, 100),
    "calendars/list_jobs": Hot(constantly(*CALENDAR, LOWEST, BATCH), BATCH, 300, 1_000),
    "calendars/lock_calendar": Hot(constantly(*CALENDAR), 1, 20, 100),
    "calendars/lock_jobs": Hot(hot.lock_jobs, BATCH, 400, 1_600),
    "calendars/read_calendar": Hot(constantly(*CALENDAR), 1, 20, 100),
    "calendars/replan_jobs": Hot(hot.replan_jobs, 1, 800, 6_000),
    "calendars/write_calendar": Hot(constantly(*CALENDAR, "{}", NOW), 1, 20, 100),
    "deliveries/claim": Hot(constantly(BATCH, 45.0, None, NOW), BATCH, 1_500, 4_000),
    "deliveries/claim of late": Hot(constantly(BATCH, 45.0, 100.0, NOW), BATCH, 1_500, 4_000),
    "deliveries/end_claim": Hot(hot.of_a_delivery(1, 0, "PENDING", 5.0, "{}", NOW), 1, 20, 100),
    "deliveries/forget_old": Hot(constantly(NOW + DAY, BATCH), 0, 20, 100),
    "deliveries/forget_old of a month": Hot(constantly(NOW + 30 * DAY, BATCH), BATCH, 2_500, 1_500),
    "deliveries/list_of_execution": Hot(hot.of_a_delivery(DEFAULT_TENANT), 1, 20, 100, tenant=True),
    "deliveries/redeliver": Hot(hot.of_a_delivery(DEFAULT_TENANT, NOW), 1, 20, 100, tenant=True),
    "dependents/follow": Hot(hot.follow, BATCH, 1_000, 8_000),
    "dependents/gather": Hot(constantly(None, BATCH, None, [], NOW), BATCH, 3_000, 7_000),
    "dependents/gather of one child": Hot(hot.gather_one, 1, 20, 100),
    # Of a hundred children.
    "dependents/list_children": Hot(of_a_job("idle"), BATCH, 200, 200),
    "dependents/list_deleted_parents": Hot(of_a_job("future"), 0, 20, 100),
    "dependents/lock_parents": Hot(hot.lock_parents, BATCH, 400, 800),
    "dependents/lock_tenant": Hot(constantly(DEFAULT_TENANT, None), 1, 20, 100),
    "dependents/put_parents": Hot(hot.put_parents, BATCH, 600, 3_000),
    "dependents/read_ancestors": Hot(hot.read_ancestors, 2 * BATCH, 1_400, 4_600),
    "dependents/read_news": Hot(constantly(None, NOW), 1, 20, 100),
    "executions/cancel": Hot(hot.cancel, BATCH, 800, 6_000),
    "executions/claim_ready": Hot(hot.claim_far, BATCH, 1_500, 4_000),
    "executions/claim_ready anew": Hot(hot.claim_anew, BATCH, 1_500, 4_000),
    "executions/claim_ready for one tenant": Hot(hot.claim_for_one, BATCH, 1_500, 4_000),
    "executions/enqueue": Hot(hot.enqueue_batch, BATCH, 2_000, 10_000),
    "executions/enqueue of a few": Hot(hot.enqueue_few, 10, 800, 1_400),
    "executions/enqueue of the past": Hot(hot.enqueue_the_past, BATCH, 1_000, 10_000),
    "executions/enqueue once more": Hot(hot.enqueue_batch, BATCH, 20, 100, repeated=True),
    "executions/expire": Hot(constantly(BATCH, "{}", "late", NOW), BATCH, 1_600, 6_000),
    "executions/explain": Hot(hot.explain("queued last"), 1, 2_500, 250),
    "executions/explain a limit": Hot(hot.explain("limited"), 1, 1_100, 450),
    "executions/explain an overlap": Hot(hot.explain("overlap"), 1, 450, 200),
    "executions/explain what runs": Hot(hot.explain("calm"), 1, 20, 100),
    "executions/finish": Hot(hot.finish_batch, 1, 1_000, 6_000),
    "executions/hand_over": Hot(hot.hand_over_batch, BATCH, 800, 6_000),
    "executions/list_newest": Hot(
        constantly(DEFAULT_TENANT, *[None] * 16, BATCH, BATCH, NOW),
        BATCH,
        1_500,
        6_000,
        tenant=True,
    ),
    # One that nothing has: all that may be looked at is, and no more.
    "executions/list_newest of a handler": Hot(
        constantly(DEFAULT_TENANT, *[None] * 11, "none", *[None] * 4, BATCH, BATCH, NOW),
        1,
        2_000,
        8_000,
        tenant=True,
    ),
    # Rows that an enqueue of another test left dead lie under the same job.
    "executions/list_of_job": Hot(hot.list_of_job, 2, 300, 700, tenant=True),
    # These two sort what one worker holds, which its capacity bounds: here 20,000 and 10,000.
    "executions/list_left": Hot(constantly(LOWEST, LOWEST, BATCH, NOW), BATCH, 21_000, 5_000),
    "executions/list_lost": Hot(constantly(LOWEST, LOWEST, BATCH), BATCH, 21_000, 5_000),
    "executions/list_overdue": Hot(
        constantly(LOWEST, LOWEST, BATCH, NOW + DAY), BATCH, 65_000, 125_000
    ),
    "executions/list_overdue when all began just now": Hot(
        constantly(LOWEST, LOWEST, BATCH, NOW + timedelta(seconds=4)), 0, 20, 1_000
    ),
    "executions/read_claimed": Hot(hot.read_claimed, BATCH, 400, 1_600),
    "executions/read_held": Hot(hot.read_held, 1, 20, 100, tenant=True),
    "executions/read_next_release": Hot(constantly(NOW, NOW), 1, 1_500, 400),
    "executions/read_outcomes": Hot(hot.read_outcomes, BATCH, 400, 5_000),
    "executions/read_rows": Hot(hot.read_rows, 2 * BATCH, 1_400, 20_000, tenant=True),
    "executions/release_due": Hot(constantly(None, BATCH, NOW), 1, 1_800, 5_000),
    "executions/release_overlaps": Hot(constantly(None, BATCH, NOW), 1, 3_000, 10_000),
    "executions/rescue": Hot(hot.rescue, BATCH, 1_200, 10_000),
    "executions/write_progress": Hot(hot.write_progress, BATCH, 800, 4_000),
    "jobs/cancel_deleted": Hot(constantly(None, BATCH, BATCH, NOW), 1, 500, 3_000),
    "jobs/cancel_waiting": Hot(of_a_job("future", BATCH, NOW), 1, 20, 200),
    "jobs/create": Hot(hot.create_job, 1, 20, 100),
    "jobs/delete": Hot(of_a_job("queued last", *CHANGE), 1, 20, 100),
    "jobs/fire_due": Hot(hot.fire_of("idle", replaces=False), 1, 2_500, 10_000),
    "jobs/fire_due replacing": Hot(hot.fire_of("queued last", replaces=True), 1, 2_500, 12_000),
    "jobs/list_newest": Hot(
        constantly(DEFAULT_TENANT, *[None] * 12, BATCH, NOW), BATCH, 1_000, 4_000, tenant=True
    ),
    "jobs/list_versions": Hot(
        of_a_job("queued last", DEFAULT_TENANT, None, BATCH), 1, 20, 100, tenant=True
    ),
    "jobs/lock": Hot(of_a_job("queued last", DEFAULT_TENANT), 1, 20, 100),
    "jobs/pause": Hot(of_a_job("queued last", *CHANGE), 1, 20, 100),
    "jobs/read": Hot(of_a_job("queued last", DEFAULT_TENANT, NOW), 1, 20, 100),
    "jobs/read as its tenant": Hot(
        of_a_job("queued last", DEFAULT_TENANT, NOW), 1, 20, 100, tenant=True
    ),
    "jobs/read_many": Hot(hot.read_many, BATCH, 600, 2_400),
    "jobs/read_recent": Hot(hot.read_recent, BATCH, 400, 20_000, tenant=True),
    "jobs/read_versions": Hot(of_a_job("queued last", DEFAULT_TENANT), 1, 20, 100),
    "jobs/read_versions as its tenant": Hot(
        of_a_job("queued last", DEFAULT_TENANT), 1, 20, 100, tenant=True
    ),
    "jobs/reserve_name": Hot(hot.reserve_name, 1, 20, 100),
    "jobs/resolve": Hot(hot.resolve_jobs, BATCH, 1_000, 4_000, tenant=True),
    "jobs/resume": Hot(of_a_job("paused", *CHANGE, True), 1, 20, 100),
    "jobs/skip_paused": Hot(
        of_a_job("paused", NOW, [NOW], [NOW], [1], ["PAUSED"], NOW), 1, 20, 100
    ),
    "jobs/stage_due": Hot(constantly(list(range(64)), EARLIER, NOW, BATCH), BATCH, 1_400, 3_000),
    "jobs/update": Hot(hot.update_job, 1, 20, 100),
    "jobs/was_made": Hot(of_a_job("queued last", DEFAULT_TENANT), 1, 20, 100, tenant=True),
    "lanes/list_servable": Hot(
        constantly(["default"], None, [], ["work"], ["HANDLER"]), 1, 20, 100
    ),
    "lanes/list_unserved": Hot(constantly(10.0, 1000, NOW + DAY), 1, 2_100, 1_800),
    "lanes/put_lane": Hot(constantly(*LANE), 0, 20, 100),
    "lanes/read_lane": Hot(constantly(*LANE), 1, 20, 100),
    "ledger/list_jobs": Hot(constantly(None, None, None, BATCH), BATCH, 200, 400),
    "ledger/list_jobs of a tenant": Hot(
        constantly(DEFAULT_TENANT, None, None, BATCH), BATCH, 400, 1_200, tenant=True
    ),
    "ledger/list_jobs of one": Hot(hot.one_kept_job, 1, 20, 100, tenant=True),
    "ledger/read_ended": Hot(hot.outcomes_of(10), BATCH, 800, 20_000, tenant=True),
    "ledger/read_live": Hot(hot.outcomes_of(10), BATCH, 400, 1_600, tenant=True),
    "ledger/read_schedules": Hot(hot.lock_jobs, BATCH, 400, 1_600, tenant=True),
    "ledger/read_skips": Hot(hot.outcomes_of(NOW, 10), BATCH, 400, 1_600, tenant=True),
    "limits/admit_held": Hot(
        constantly([], 0, None, BATCH, BATCH, BATCH, 7, NOW), 1, 6_500, 20_000
    ),
    # A page of all rows, of which none is this tenant's; and a job's, among what is dead.
    "limits/apply": Hot(constantly(f"tenant:{LOWEST}", None, BATCH, NOW), 1, 600, 2_000),
    "limits/apply to a job": Hot(hot.apply_to_a_job, 1, 300, 700),
    "limits/apply to the keys of a job": Hot(hot.apply_to_keys, 1, 300, 700),
    "limits/forget_starts": Hot(constantly(None, BATCH, NOW), 1, 2_000, 4_000),
    "limits/forget_unnamed": Hot(constantly(None, BATCH), 1, 2_000, 4_000),
    "limits/note_changes": Hot(hot.note_changes, BATCH, 400, 2_000),
    "limits/put_limits": Hot(hot.put_limits, BATCH // 2, 400, 2_000),
    "logs/append": Hot(hot.append_lines, BATCH, 400, 4_000),
    "logs/read_page": Hot(hot.read_lines, 1, 20, 400),
    # The day after the last of the attempts, and of the logs.
    "partitions/read_missing_days": Hot(constantly(NOW, 7), 2, 20, 100),
    "queues/pause": Hot(constantly("default", None, NOW), 1, 20, 100),
    "queues/resume": Hot(constantly("default", None), 0, 20, 100),
    "queues/forget_clocks": Hot(constantly(NOW, BATCH), 1, 1_500, 1_500),
    "requests/abandon": Hot(constantly(*REQUEST, NOW), 0, 20, 100),
    "requests/begin": Hot(constantly(*REQUEST, b"", NOW, 30.0), 1, 20, 100),
    "requests/forget_old": Hot(constantly(NOW, BATCH), BATCH, 1_500, 1_000),
    "requests/keep_answer": Hot(constantly(*REQUEST, NOW, "{}"), 0, 20, 100),
    "requests/read_enqueued": Hot(constantly(*REQUEST), 0, 20, 100),
    "requests/release": Hot(constantly(*REQUEST, NOW, NOW, 30.0), 0, 20, 100),
    "secrets/delete": Hot(hot.of_a_secret(), 1, 20, 100, tenant=True),
    "secrets/find": Hot(hot.of_a_secret(), 1, 20, 100, tenant=True),
    "secrets/list_by_name": Hot(
        constantly(DEFAULT_TENANT, "", BATCH), BATCH, 300, 600, tenant=True
    ),
    "secrets/list_sealed": Hot(constantly(LOWEST, "", BATCH), BATCH, 300, 600),
    "secrets/put": Hot(hot.of_a_secret(2, "k2", b"", b"", NOW), 1, 20, 100, tenant=True),
    "secrets/read_sealed": Hot(hot.read_sealed, BATCH, 300, 800),
    "secrets/rewrap": Hot(hot.of_a_secret(1, b"", "k2", b"n", b""), 1, 20, 100),
    "schema/read_arrears": Hot(constantly([], None, 10.0, 15.0, NOW), 1, 400, 600),
    "shards/list_schedulers": Hot(constantly(10.0, NOW), 1, 600, 1_000),
    "signing_keys/add": Hot(hot.of_a_signing_key(2, "k1", b"", b"", 60.0, NOW), 1, 40, 200),
    "signing_keys/list_numbers": Hot(hot.of_a_signing_key(), 1, 20, 100),
    "signing_keys/list_sealed": Hot(constantly(LOWEST, 0, BATCH), BATCH, 300, 600),
    "signing_keys/read_sealed": Hot(hot.of_a_signing_key(NOW), 1, 20, 100),
    "signing_keys/rewrap": Hot(hot.of_a_signing_key(1, b"", "k2", b"n", b""), 1, 20, 100),
    "tenants/find_tenant": Hot(constantly(DEFAULT_TENANT), 1, 20, 100),
    "tenants/list_quotas": Hot(constantly(None, BATCH), BATCH, 300, 1_000),
    "tenants/lock_quotas": Hot(constantly(DEFAULT_TENANT), 1, 20, 100),
    "tenants/read_callback_allow": Hot(constantly(DEFAULT_TENANT), 1, 20, 100),
    "workers/beat": Hot(hot.beat, 1, 300, 600),
    "workers/bury_silent": Hot(hot.bury, 1, 100, 200),
    "workers/deregister": Hot(hot.deregister, 1, 20, 100),
    "workers/drain": Hot(hot.drain, 1, 20, 100),
    "workers/forget_dead": Hot(constantly(BATCH, NOW), 1, 2_000, 2_000),
    "workers/list_cancelled": Hot(hot.list_cancelled, 0, 300, 600),
    "workers/register": Hot(hot.register_worker, 1, 20, 100),
    **DEAD_LETTERS,
}


def test_every_statement_is_guarded_or_need_not_be() -> None:
    guarded = {name.partition(" ")[0] for name in HOT}
    cold = {name for names in COLD.values() for name in names}
    known = {entry.name for entry in every_statement()}
    assert not guarded & cold
    assert sorted(known - guarded - cold) == []
    assert sorted((guarded | cold) - known) == []


@asynccontextmanager
async def session(url: str) -> AsyncIterator[asyncpg.Connection]:
    """One that keeps what it has prepared to the end."""
    db = await asyncpg.connect(url, statement_cache_size=1000, max_cached_statement_lifetime=0)
    try:
        yield db
    finally:
        await db.close()


@asynccontextmanager
async def undone(db: asyncpg.Connection) -> AsyncIterator[asyncpg.Connection]:
    transaction = db.transaction()
    await transaction.start()
    try:
        yield db
    finally:
        await transaction.rollback()


async def call(db: asyncpg.Connection, name: str, batch: Batch) -> tuple[int, Touched]:
    """How many rows came back, and what was touched."""
    case, text = HOT[name], statement(name.partition(" ")[0]).sql
    arguments = await case.arguments(batch)
    if case.repeated:
        await db.execute(text, *arguments)
    if case.tenant:
        await db.execute(statement("tenants/enter_tenant").sql, DEFAULT_TENANT)
    answer = await measure(db, text, *arguments)
    await db.execute("reset role")
    return answer


async def warm_up(db: asyncpg.Connection) -> None:
    for name in HOT:
        for _ in range(CALLS):
            async with undone(db):
                await call(db, name, Batch(0, HANDFUL))


async def create(server: DatabaseFactory) -> str:
    """A database whose tables are empty, and which knows it."""
    name = urlsplit(await server.create()).path.removeprefix("/")
    async with session(server.server.url(name, "postgres")) as admin:
        await admin.execute("analyze")
    return name


@dataclass(frozen=True, slots=True)
class Crowds:
    """By what statistics they have, where they are; and the session that was there before."""

    urls: dict[str, str]
    warm: asyncpg.Connection


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def crowds(server: DatabaseFactory) -> AsyncIterator[Crowds]:
    fresh, stale = await create(server), await create(server)
    # The superuser, whom no time limit stops.
    async with session(server.server.url(fresh, "postgres")) as admin:
        await fill_handful(admin)
        await fill_waiting(admin)
        await admin.execute("analyze")
        await fill_running(admin)
    async with session(server.server.url(stale)) as warm:
        async with session(server.server.url(stale, "postgres")) as admin:
            await fill_handful(admin)
            await warm_up(warm)
            await fill_waiting(admin)
            await fill_running(admin)
        yield Crowds({"fresh": server.server.url(fresh), "stale": server.server.url(stale)}, warm)


@pytest_asyncio.fixture(loop_scope="module")
async def warm(crowds: Crowds) -> AsyncIterator[asyncpg.Connection]:
    async with undone(crowds.warm) as db:
        yield db


@pytest_asyncio.fixture(params=["fresh", "stale"], loop_scope="module")
async def crowd(
    request: pytest.FixtureRequest, crowds: Crowds
) -> AsyncIterator[asyncpg.Connection]:
    async with session(crowds.urls[request.param]) as db, undone(db):
        yield db


def named_indexes(name: str) -> set[str]:
    """Those that the statement's header says it leans on: not each in every call."""
    text = statement(name.partition(" ")[0]).header["index"].partition("  ")[0]
    return {word for word in text.split(", ") if not word.startswith("pg_")}


async def check(db: asyncpg.Connection, name: str, number: int) -> None:
    case = HOT[name]
    found, touched = await call(db, name, Batch(number, BATCH))
    assert found == case.rows
    assert not touched.scanned.keys() - SMALL, touched.scanned
    assert touched.entries.total() <= case.entries, touched.entries
    assert touched.blocks <= case.blocks
    if touched.entries:
        assert named_indexes(name) & touched.searches.keys()


@together
@pytest.mark.parametrize("name", HOT)
async def test_a_call_reads_no_more_than_its_own_rows(crowd: asyncpg.Connection, name: str) -> None:
    for number in range(CALLS):
        await check(crowd, name, number)


@together
@pytest.mark.parametrize("name", HOT)
async def test_a_plan_from_quiet_times_reads_no_more(warm: asyncpg.Connection, name: str) -> None:
    await check(warm, name, 0)


@together
async def test_what_a_job_holds_back_is_not_read_for_the_one_that_may_start(
    crowd: asyncpg.Connection,
) -> None:
    """Of a job whose executions queue up, 20,000 wait for the first one."""
    job_id = id_of(f"job-{FIRST['overlap']}")
    await crowd.execute(QUEUE_UP, job_id, 20_000)
    text = statement("executions/release_overlaps").sql
    _, touched = await measure(crowd, text, UUID(int=job_id.int - 1), 1, NOW)
    assert touched.entries["executions_job"] <= 10


@together
async def test_the_plans_from_quiet_times_are_still_there(warm: asyncpg.Connection) -> None:
    """Or else the test above would tell nothing."""
    texts = [statement(name.partition(" ")[0]).sql for name in HOT]
    kept = "select count(*) from pg_prepared_statements where statement = any($1)"
    assert await warm.fetchval(kept, texts) == len(set(texts))
