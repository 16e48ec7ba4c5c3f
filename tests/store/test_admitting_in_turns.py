"""Under one limit more lists of keys wait than a page has: each of them has its turn."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from foliot.core.ids import ExecutionId, JobId, TenantId
from foliot.core.limits import job_limit, tenant_limit
from foliot.scheduler import release
from foliot.scheduler.release import Admit
from foliot.store import admitting
from foliot.store.admitting import Place, admit_held, put_limits
from foliot.store.database import Database
from foliot.testing.clock import ManualClock
from foliot.testing.database import sql
from foliot.testing.rows import NOW, JobRow, make_executions, make_job, make_tenant

END_READY = sql("delete from foliot.executions where rank is not null returning id")
PAGE = 5


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admitting, "GROUPS", PAGE)


async def waiting(
    database: Database,
    job: JobRow,
    number: int,
    *keys: str,
    **changes: Any,  # noqa: ANN401 - a value for any column
) -> list[ExecutionId]:
    rows = await make_executions(
        database, job, number, status="WAITING", hold="LIMIT", limit_keys=list(keys), **changes
    )
    return [row.execution_id for row in rows]


async def make_jobs(database: Database, tenant: TenantId, number: int) -> list[JobRow]:
    """With a limit each, in the order of their keys."""
    jobs = [
        await make_job(database, id=JobId(UUID(int=(n + 1) << 100, version=4)), tenant_id=tenant)
        for n in range(number)
    ]
    await put_limits(database, [job_limit(tenant, job.job_id, job.name, 9) for job in jobs])
    return jobs


async def looks_until(database: Database, trades: list[Admit], last: ExecutionId) -> int:
    """What is let go is over before the next look; how many looks it takes until `last` is."""
    for look in range(1, 100):
        await trades[look % len(trades)].run_once(NOW)
        if last in {row["id"] for row in await database.fetch(END_READY)}:
            return look
    raise AssertionError("it waits for ever")


@pytest.mark.parametrize("batch", [admitting.BATCH, 2])
@pytest.mark.parametrize("schedulers", [1, 3])
async def test_the_last_list_under_a_full_limit_has_its_turn(
    database: Database, batch: int, schedulers: int
) -> None:
    """Its row is the oldest; the lists before it have more rows than all looks could let go."""
    tenant = await make_tenant(database)
    await put_limits(database, [tenant_limit(tenant, 2)])
    jobs = await make_jobs(database, tenant, 4 * PAGE + 1)
    for job in jobs[:-1]:
        await waiting(database, job, 20, f"tenant:{tenant}", f"job:{job.job_id}")
    (last,) = await waiting(
        database,
        jobs[-1],
        1,
        f"tenant:{tenant}",
        f"job:{jobs[-1].job_id}",
        scheduled_time=NOW - timedelta(days=1),
    )
    trades = [Admit(database, ManualClock(), batch) for _ in range(schedulers)]
    assert await looks_until(database, trades, last) <= 5 * schedulers


async def test_a_round_begins_anew_within_one_look(database: Database) -> None:
    """No slot stays free because the walk went on near the end."""
    tenant = await make_tenant(database)
    await put_limits(database, [tenant_limit(tenant, 3)])
    jobs = await make_jobs(database, tenant, PAGE + 1)
    for job in jobs:
        await waiting(database, job, 3 if job != jobs[-1] else 1, f"tenant:{tenant}", job.name)
    trade = Admit(database, ManualClock())
    gone = []
    for _ in range(6):
        gone.append((await trade.run_once(NOW)).released)
        await database.execute(END_READY)
    assert gone == [3, 3, 3, 3, 3, 1]


async def test_the_keys_under_a_full_job_have_their_turn_while_its_tenant_has_room(
    database: Database,
) -> None:
    tenant = await make_tenant(database)
    await put_limits(database, [tenant_limit(tenant, 100)])
    job, other = await make_jobs(database, tenant, 2)
    await put_limits(database, [job_limit(tenant, job.job_id, job.name, 1)])
    under = (f"tenant:{tenant}", f"job:{job.job_id}")
    for number in range(2 * PAGE):
        await waiting(database, job, 20, *under, f"key:{tenant}:{number:02}")
    early = NOW - timedelta(days=1)
    (last,) = await waiting(database, job, 1, *under, f"key:{tenant}:99", scheduled_time=early)
    await waiting(database, other, 50, f"tenant:{tenant}", f"job:{other.job_id}")
    assert await looks_until(database, [Admit(database, ManualClock())], last) == 3


async def test_many_limits_that_are_full_go_on_one_after_another(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More limits are cut off than one look goes on with."""
    monkeypatch.setattr(release, "CUT_OFF_MAX", 1)
    lasts = []
    for _ in range(3):
        tenant = await make_tenant(database)
        await put_limits(database, [tenant_limit(tenant, 1)])
        job = await make_job(database, tenant_id=tenant)
        for number in range(PAGE + 1):
            rows = await waiting(database, job, 30, f"tenant:{tenant}", f"key:{tenant}:{number}")
        lasts.append(rows)
    trade, gone = Admit(database, ManualClock()), set[ExecutionId]()
    for _ in range(24):
        await trade.run_once(NOW)
        gone |= {row["id"] for row in await database.fetch(END_READY)}
    assert [bool(gone & set(rows)) for rows in lasts] == [True, True, True]


async def test_a_walk_within_a_limit_ends_with_it(database: Database) -> None:
    job = await make_job(database)
    for key in ("key:a", "key:b"):
        for number in range(3):
            await waiting(database, job, 1, key, f"key:{number}")
    report = await admit_held(database, Place(("key:a", "key:0"), job.lane_id), within=1, now=NOW)
    assert (len(report.admitted), report.after, report.cut) == (2, None, None)


async def test_what_was_not_looked_at_is_told(database: Database) -> None:
    job = await make_job(database)
    await database.execute(sql("insert into foliot.limits values ('key:a', 0)"))
    await waiting(database, job, 1, "key:a", "key:b")
    await waiting(database, job, 1, "key:a", "key:c")
    within = await admit_held(database, Place(("key:a", "key:b"), job.lane_id), now=NOW)
    assert (within.cut, within.after) == (1, None)
    assert (await admit_held(database, now=NOW)).cut is None
    assert (await admit_held(database, Place(("key:Z",), 0), now=NOW)).cut is None
