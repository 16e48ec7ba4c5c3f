"""A rate is kept in every window, whoever admits, claims and dies; nobody can save up starts."""

import random
from datetime import timedelta

import pytest

from foliot.core.ids import WorkerId
from foliot.core.limits import job_limit, job_rate, key_text, tenant_limit, tenant_rate, window_use
from foliot.core.model import RateLimit
from foliot.core.states import ExecutionEvent
from foliot.runtime.clock import SystemClock
from foliot.scheduler.release import OPENING_SECONDS_MIN, PAUSE_SECONDS, Admit
from foliot.scheduler.retain import Retain
from foliot.store.admitting import admit_held, put_limits
from foliot.store.claiming import Claim, ClaimRequest, claim
from foliot.store.database import Database
from foliot.store.finishing import Outcome, finish
from foliot.store.forgetting import Forgotten, forget_starts
from foliot.store.releasing import release_due
from foliot.testing.clock import ManualClock
from foliot.testing.database import sql
from foliot.testing.flaky_nodes import FlakyNode, flaky_options, run_killing
from foliot.testing.rows import (
    DEFAULT_TENANT,
    NOW,
    ExecutionRow,
    JobRow,
    insert_rows,
    make_executions,
    make_job,
    make_worker,
)
from foliot.testing.spans import most_within

SECOND = timedelta(seconds=1)
STARTS = sql("select key, at, started from foliot.rate_starts order by key, at")
# Every claim that was ever made, of rows that live and that are over.
CLAIMS = sql("select at, started from foliot.rate_starts")


async def limited_job(database: Database, count: int, seconds: float) -> JobRow:
    job = await make_job(database)
    rate = job_rate(job.tenant_id, job.job_id, job.name, RateLimit(count, seconds))
    assert rate is not None
    await put_limits(database, [rate])
    return job


async def waiting(database: Database, job: JobRow, number: int) -> list[ExecutionRow]:
    keys = [f"job:{job.job_id}"]
    return await make_executions(
        database, job, number, status="WAITING", hold="LIMIT", limit_keys=keys
    )


async def admitted(database: Database, seconds: float) -> int:
    return len((await admit_held(database, now=NOW + seconds * SECOND)).admitted)


async def claimed(
    database: Database, worker: WorkerId, job: JobRow, seconds: float, bite: int = 100
) -> tuple[Claim, ...]:
    wanted = ClaimRequest(worker, job.queue, [job.lane_id], bite)
    return await claim(database, wanted, NOW + seconds * SECOND)


async def test_so_many_start_within_the_period_and_the_next_when_one_leaves_it(
    database: Database,
) -> None:
    job = await limited_job(database, 3, 10)
    worker = await make_worker(database)
    await waiting(database, job, 10)
    assert await admitted(database, 0) == 3
    assert len(await claimed(database, worker, job, 0, 1)) == 1
    assert len(await claimed(database, worker, job, 2, 2)) == 2
    assert await admitted(database, 9.999) == 0
    assert await admitted(database, 10) == 1
    assert len(await claimed(database, worker, job, 10)) == 1
    assert await admitted(database, 11.999) == 0
    assert await admitted(database, 12) == 2


async def test_what_nobody_claims_uses_the_rate_up_however_long_it_waits(
    database: Database,
) -> None:
    """Or else all that was let go while no worker was there would start at once."""
    job = await limited_job(database, 3, 10)
    worker = await make_worker(database)
    await waiting(database, job, 10)
    assert await admitted(database, 0) == 3
    assert await admitted(database, 100) == 0
    assert len(await claimed(database, worker, job, 100)) == 3
    assert await admitted(database, 109.999) == 0
    assert await admitted(database, 110) == 3


@pytest.mark.parametrize("event", [ExecutionEvent.RETRY, ExecutionEvent.HAND_BACK])
async def test_every_claim_is_a_start(database: Database, event: ExecutionEvent) -> None:
    job = await limited_job(database, 2, 10)
    worker = await make_worker(database)
    await waiting(database, job, 1)
    for at in (0, 1):
        assert await admitted(database, at) == 1
        (mine,) = await claimed(database, worker, job, at)
        outcome = Outcome(mine.execution_id, mine.fence, event)
        await finish(database, worker, [outcome], NOW + at * SECOND)
        await release_due(database, now=NOW + at * SECOND)
    assert await admitted(database, 9.999) == 0
    assert await admitted(database, 10) == 1


async def test_an_end_gives_no_start_back(database: Database) -> None:
    job = await limited_job(database, 1, 10)
    worker = await make_worker(database)
    await waiting(database, job, 2)
    assert await admitted(database, 0) == 1
    (mine,) = await claimed(database, worker, job, 0)
    outcome = Outcome(mine.execution_id, mine.fence, ExecutionEvent.SUCCEED)
    await finish(database, worker, [outcome], NOW + SECOND)
    assert await admitted(database, 9) == 0


async def test_both_the_concurrency_and_the_rate_of_a_job_must_have_room(
    database: Database,
) -> None:
    job = await make_job(database)
    worker = await make_worker(database)
    place = (job.tenant_id, job.job_id, job.name)
    rate = job_rate(*place, RateLimit(3, 10))
    assert rate is not None
    await put_limits(database, [job_limit(*place, 2), rate])
    await waiting(database, job, 10)
    assert await admitted(database, 0) == 2
    (first, _) = await claimed(database, worker, job, 0)
    outcome = Outcome(first.execution_id, first.fence, ExecutionEvent.SUCCEED)
    await finish(database, worker, [outcome], NOW)
    assert await admitted(database, 0) == 1, "of three starts one is left"
    await claimed(database, worker, job, 0)
    assert await admitted(database, 10) == 0, "two run"


async def test_a_rate_that_is_used_up_holds_nobody_else(database: Database) -> None:
    job = await limited_job(database, 1, 10)
    other = await limited_job(database, 1, 10)
    await waiting(database, job, 50)
    await waiting(database, other, 50)
    assert await admitted(database, 0) == 2


async def test_a_tenants_rate_is_over_all_of_its_jobs(database: Database) -> None:
    rate = tenant_rate(DEFAULT_TENANT, RateLimit(3, 10))
    assert rate is not None
    await put_limits(database, [rate])
    for _ in range(3):
        job = await make_job(database)
        keys = [key_text(rate.key), f"job:{job.job_id}"]
        await make_executions(database, job, 2, status="WAITING", hold="LIMIT", limit_keys=keys)
    assert await admitted(database, 0) == 3


async def test_only_what_is_under_a_rate_leaves_a_mark(database: Database) -> None:
    job = await limited_job(database, 5, 10)
    worker = await make_worker(database)
    await put_limits(database, [tenant_limit(DEFAULT_TENANT, 50)])
    keys = [f"tenant:{DEFAULT_TENANT}", f"job:{job.job_id}"]
    await make_executions(database, job, 3, limit_keys=keys)
    await make_executions(database, job, 2)
    assert len(await claimed(database, worker, job, 0)) == 5
    assert [tuple(row) for row in await database.fetch(STARTS)] == [(keys[1], NOW, 3)]


@pytest.mark.parametrize("count", [1, 2, 3, 5])
async def test_the_next_slot_is_when_the_core_says(database: Database, count: int) -> None:
    """Also if the limit was lowered and more are in the window than it allows."""
    job = await limited_job(database, count, 10)
    await waiting(database, job, 1)
    starts = [NOW - second * SECOND for second in (9, 7, 7, 4)]
    rows = [
        {"key": f"job:{job.job_id}", "at": at, "started": starts.count(at)} for at in set(starts)
    ]
    await insert_rows(database, "rate_starts", rows)
    use = window_use(RateLimit(count, 10), starts, NOW)
    report = await admit_held(database, now=NOW)
    if use.used < count:
        assert (len(report.admitted), report.opens_in_seconds) == (1, None)
    else:
        assert use.next_slot_at is not None
        wait = (use.next_slot_at - NOW).total_seconds()
        assert report.admitted == ()
        assert report.opens_in_seconds == pytest.approx(wait)


async def test_the_scheduler_pauses_until_a_rate_has_room(database: Database) -> None:
    job = await limited_job(database, 1, 10)
    worker = await make_worker(database)
    await waiting(database, job, 3)
    trade = Admit(database, ManualClock())
    await trade.run_once(NOW)
    await claimed(database, worker, job, 0)
    pauses = []
    for seconds in (1, 9.9, 9.999):
        assert (await trade.run_once(NOW + seconds * SECOND)).released == 0
        pauses.append(trade.pause_seconds)
    assert pauses == [PAUSE_SECONDS, pytest.approx(0.1), OPENING_SECONDS_MIN]
    assert (await trade.run_once(NOW + 10 * SECOND)).released == 1


async def test_starts_are_forgotten_when_no_rate_looks_back_to_them(database: Database) -> None:
    job = await limited_job(database, 1, 10)
    key, gone = f"job:{job.job_id}", "job:gone"
    rows = [
        {"key": each, "at": NOW - age * SECOND, "started": 1}
        for each in (key, gone)
        for age in (12, 11, 10, 9)
    ]
    await insert_rows(database, "rate_starts", rows)
    assert await forget_starts(database, now=NOW, batch=100) == Forgotten(7, None)
    assert [tuple(row) for row in await database.fetch(STARTS)] == [(key, NOW - 9 * SECOND, 1)]


async def test_forgetting_starts_goes_by_batches_over_all_keys(database: Database) -> None:
    rows = [
        {"key": f"job:{number}", "at": NOW - age * SECOND, "started": 1}
        for number in range(5)
        for age in (1, 2, 3)
    ]
    await insert_rows(database, "rate_starts", rows)
    trade = Retain(database, rounds=2, batch=4)
    first = await trade.run_once(NOW)
    assert (first.starts, first.more) == (8, True)
    assert (await trade.run_once(NOW)).starts == 7
    assert await database.fetch(STARTS) == []


class Node(FlakyNode):
    """Admits, claims, ends and releases."""

    def __init__(self, flaky: Database, steady: Database, job: JobRow, seed: int) -> None:
        super().__init__(flaky, steady)
        self.job, self.random = job, random.Random(seed)

    async def take_turn(self, worker: WorkerId) -> None:
        events = [ExecutionEvent.SUCCEED, ExecutionEvent.SUCCEED, ExecutionEvent.RETRY]
        await admit_held(self.flaky)
        wanted = ClaimRequest(worker, "default", [self.job.lane_id], self.random.randint(1, 5))
        for mine in await claim(self.flaky, wanted):
            outcome = Outcome(mine.execution_id, mine.fence, self.random.choice(events))
            await finish(self.flaky, worker, [outcome])
        await release_due(self.flaky)


@pytest.mark.timeout(60)
async def test_no_window_has_more_starts_than_the_rate_whoever_is_killed(
    database: Database, database_url: str
) -> None:
    """Four nodes that admit and claim at once: 40 executions, 8 in any fifth of a second."""
    job = await limited_job(database, 8, 0.2)
    await waiting(database, job, 40)

    async def look() -> None:
        await SystemClock().sleep(0.01)

    async with Database(database_url, flaky_options(4)) as flaky:
        killed = await run_killing([Node(flaky, database, job, n) for n in range(4)], 5, look)
    claims = await database.fetch(CLAIMS)
    assert sum(row["started"] for row in claims) >= 40
    assert killed > 0
    assert most_within(claims, timedelta(seconds=0.2)) <= 8
