"""Passes that make waiting rows claimable: on time, to the end, and no matter who else does it."""

import asyncio
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import pytest

from foliot.core.limits import key_limit
from foliot.core.model import After
from foliot.runtime.clock import SystemClock
from foliot.runtime.loop import repeat
from foliot.runtime.metrics import EXECUTIONS_RELEASED
from foliot.runtime.service import background
from foliot.scheduler.after import FireAfter
from foliot.scheduler.release import (
    PAUSE_SECONDS,
    Admit,
    Release,
    Released,
    ReleaseOverlaps,
    half_time,
)
from foliot.scheduler.wide_look import WIDE_LOOK_SECONDS
from foliot.store.admitting import put_limits
from foliot.store.connecting import ConnectionOptions
from foliot.store.database import Database
from foliot.store.errors import TransactionConflict
from foliot.store.statements import Statement
from foliot.testing.clock import ManualClock
from foliot.testing.database import sql
from foliot.testing.following import end_one, make_child, make_parent
from foliot.testing.rows import (
    DEFAULT_TENANT,
    NOW,
    make_execution,
    make_executions,
    make_job,
)

SECOND = timedelta(seconds=1)
CLAIMABLE = sql("select count(*) from foliot.executions where rank is not null")
LOCK_ROWS = sql("select from foliot.executions for no key update")
ADD = sql(
    "insert into foliot.executions (id, tenant_id, job_id, scheduled_time, available_at,"
    " created_at, job_version, lane_id, priority, status, trigger, queue, job_name)"
    " select gen_random_uuid(), tenant_id, id, t.at, t.at, t.at, 1, lane_id, 5, 'PENDING',"
    " 'ENQUEUE', queue, name from foliot.jobs,"
    " (select statement_timestamp() + make_interval(secs => $1) as at) t returning available_at"
)
QUEUED = sql("select queued_at from foliot.executions where rank is not null")


def released_so_far() -> float:
    (samples,) = EXECUTIONS_RELEASED.collect()
    return samples.samples[0].value


async def claimable(database: Database) -> int:
    return int(await database.fetch_value(CLAIMABLE))


async def test_a_pass_goes_on_until_a_batch_is_not_full(database: Database) -> None:
    job = await make_job(database)
    await make_executions(database, job, 25, status="PENDING", available_at=NOW)
    await make_execution(database, job, status="PENDING", available_at=NOW + SECOND)
    before = released_so_far()
    release = Release(database, ManualClock(), batch=10)
    assert await release.run_once(NOW) == Released(25)
    assert released_so_far() - before == 25
    assert await claimable(database) == 25


async def test_what_is_due_under_a_limit_is_counted_apart(database: Database) -> None:
    job = await make_job(database)
    await make_executions(
        database, job, 3, status="PENDING", available_at=NOW, limit_keys=["queue:q"]
    )
    assert await Release(database, ManualClock()).run_once(NOW) == Released(0, held=3)


@pytest.mark.parametrize(
    ("due_in", "pause"), [(None, PAUSE_SECONDS), (0.05, 0.05), (0.35, PAUSE_SECONDS), (0.0, None)]
)
async def test_the_pause_ends_when_the_next_row_is_due(
    database: Database, due_in: float | None, pause: float | None
) -> None:
    job = await make_job(database)
    await make_execution(database, job, status="WAITING", available_at=NOW + SECOND / 100)
    if due_in is not None:
        at = NOW + timedelta(seconds=due_in)
        await make_execution(database, job, status="RETRYING", available_at=at)
    release = Release(database, ManualClock())
    await release.run_once(NOW)
    assert release.pause_seconds == pytest.approx(PAUSE_SECONDS if pause is None else pause)


async def test_a_row_below_the_bound_is_found_by_the_wide_look(database: Database) -> None:
    """Every ten seconds: what came late, below what the narrow looks begin with."""
    job, clock = await make_job(database), ManualClock()
    release = Release(database, clock)
    await release.run_once(NOW)
    late = NOW - timedelta(seconds=11)
    await make_execution(database, job, status="PENDING", available_at=late)
    clock.seconds += WIDE_LOOK_SECONDS - 1
    assert await release.run_once(NOW) == Released(0)
    clock.seconds += 1
    assert await release.run_once(NOW) == Released(1)
    await make_execution(database, job, status="PENDING", available_at=late)
    assert await release.run_once(NOW) == Released(0), "the next looks are narrow again"


async def test_rows_in_the_hands_of_others_do_not_keep_a_pass_from_its_end(
    database: Database,
) -> None:
    job = await make_job(database)
    await make_executions(database, job, 5, status="PENDING", available_at=NOW)
    release = Release(database, ManualClock(), batch=5)
    async with database.transaction() as other:
        await other.execute(LOCK_ROWS)
        later = NOW + timedelta(minutes=1)
        assert await release.run_once(later) == Released(0)
    assert await release.run_once(later) == Released(5), "and it begins where it began before"


async def test_four_schedulers_let_each_row_go_once(database: Database, database_url: str) -> None:
    job = await make_job(database)
    await make_executions(database, job, 400, status="RETRYING", available_at=NOW)
    async with Database(database_url, ConnectionOptions(max_connections=4)) as nodes:
        trades = [Release(nodes, ManualClock(), batch=30) for _ in range(4)]
        passes = await asyncio.gather(*(trade.run_once(NOW) for trade in trades))
        released = sum(one.released for one in passes)
        released += (await trades[0].run_once(NOW)).released
    assert released == 400
    assert await claimable(database) == 400


async def test_a_sub_second_delay_is_kept(database: Database) -> None:
    """In real time: claimable within 50 ms of its time on a machine that is not too busy, which
    this one may be; a pass in every fifth of a second alone would be 100 ms late on average."""
    await make_job(database)
    clock = SystemClock()
    release = Release(database, clock)
    done = asyncio.Event()
    lateness: list[timedelta] = []

    async def one_pass() -> float:
        await release.run_once()
        if rows := await database.fetch(QUEUED):
            lateness.append(rows[0]["queued_at"] - due)
            done.set()
        return release.pause_seconds

    for delay in (0.35, 0.41, 0.47):
        await database.execute(sql("delete from foliot.executions"))
        done.clear()
        due: datetime = await database.fetch_value(ADD, delay)
        async with background(repeat("release", one_pass, clock=clock), name="release"):
            async with asyncio.timeout(10):
                await done.wait()
    assert min(lateness) >= timedelta()
    assert min(lateness) < timedelta(milliseconds=50)


async def test_a_walk_over_held_jobs_goes_to_its_end(database: Database) -> None:
    for _ in range(7):
        job = await make_job(database)
        await make_executions(database, job, 2, status="WAITING", available_at=NOW)
    overlaps = ReleaseOverlaps(database, ManualClock(), jobs=2)
    assert await overlaps.run_once(NOW) == Released(7)
    assert await overlaps.run_once(NOW) == Released(0), "the first of each is under way"


async def test_every_slot_is_given_out(database: Database) -> None:
    """Full batches are asked for again, and the walk goes over all limits."""
    job = await make_job(database)
    for number in range(5):
        limit = key_limit(DEFAULT_TENANT, str(number), 4)
        await put_limits(database, [limit])
        await make_executions(
            database,
            job,
            6,
            status="WAITING",
            hold="LIMIT",
            limit_keys=[f"key:{DEFAULT_TENANT}:{number}"],
        )
    admit = Admit(database, ManualClock(), batch=3)
    assert await admit.run_once(NOW) == Released(20)
    assert await admit.run_once(NOW) == Released(0)


def test_a_long_walk_rests_as_long_as_it_took() -> None:
    assert half_time(0.01) == PAUSE_SECONDS
    assert half_time(3.0) == 3.0


class Pinned(Database):
    """Whoever looks at everything takes too long."""

    async def fetch_row(self, statement: Statement, *arguments: object) -> Any:  # noqa: ANN401
        if statement.name in ("executions/release_due", "dependents/read_news"):
            self.looks.append(arguments[0])
            if arguments[0] is None:
                raise TransactionConflict("it took too long", "57014", statement.name)
        return await super().fetch_row(statement, *arguments)

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.looks: list[object] = []


@pytest.mark.parametrize("trade_of", [Release, FireAfter])
async def test_a_look_at_everything_that_fails_keeps_nothing_near_waiting(
    database: Database, database_url: str, trade_of: type[Release | FireAfter]
) -> None:
    """What was done under a pinned snapshot lies in its way, for as long as that lasts."""
    await make_execution(database, status="PENDING", rank=None, available_at=NOW)
    parent = await make_parent(database)
    await make_child(database, After((parent.job_id,)))
    await end_one(database, parent)
    clock = ManualClock()
    async with Pinned(database_url) as pinned:
        trade = trade_of(pinned, clock)
        for second in range(21):
            clock.seconds = float(second)
            with suppress(TransactionConflict):
                await trade.run_once(NOW + timedelta(seconds=1))
    wide = [low is None for low in pinned.looks]
    assert wide[:2] == [True, False]
    assert sum(wide) == 3
