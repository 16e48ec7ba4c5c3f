"""What waits for a place in a full queue keeps no slots from what could run elsewhere."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from foliot.core.ids import ExecutionId, TenantId, WorkerId
from foliot.core.limits import tenant_limit
from foliot.core.states import ExecutionEvent
from foliot.store.admitting import STRANDED_SECONDS, admit_held, put_limits, withdraw
from foliot.store.claiming import Claim, ClaimRequest, Look, claim
from foliot.store.database import Database
from foliot.store.finishing import Outcome, finish
from foliot.store.queues import limit_queue
from foliot.testing.database import sql
from foliot.testing.rows import (
    NOW,
    JobRow,
    make_executions,
    make_job,
    make_lane,
    make_tenant,
    make_worker,
)

SECOND = timedelta(seconds=1)
LATER = NOW + timedelta(seconds=STRANDED_SECONDS + 1)
READY = sql(
    "select count(*) from foliot.executions where rank is not null and worker_id is null"
    " and queue = $1"
)
END = sql("delete from foliot.executions where id = any($1)")


async def waiting(
    database: Database,
    job: JobRow,
    number: int,
    **changes: Any,  # noqa: ANN401 - a value for any column
) -> list[ExecutionId]:
    """Under the limit of its tenant."""
    rows = await make_executions(
        database,
        job,
        number,
        status="WAITING",
        hold="LIMIT",
        limit_keys=[f"tenant:{job.tenant_id}"],
        **changes,
    )
    return [row.execution_id for row in rows]


async def admitted(database: Database, now: datetime = NOW) -> list[ExecutionId]:
    return list((await admit_held(database, now=now)).admitted)


async def claimed(
    database: Database, worker: WorkerId, jobs: Sequence[JobRow], now: datetime = NOW
) -> Sequence[Claim]:
    lanes = [job.lane_id for job in jobs]
    return await claim(
        database, ClaimRequest(worker, jobs[0].queue, lanes, 100, Look.EVERYWHERE), now
    )


async def ready(database: Database, queue: str) -> int:
    return int(await database.fetch_value(READY, queue))


async def a_tenant(database: Database, most: int) -> TenantId:
    tenant = await make_tenant(database)
    await put_limits(database, [tenant_limit(tenant, most)])
    return tenant


async def a_report(
    database: Database, tenant: TenantId, most: int | None, handler: str = "work"
) -> JobRow:
    """A job of the queue `reports`, of which so many may run."""
    lane = await make_lane(database, "reports", handler=handler)
    await limit_queue(database, "reports", most)
    return await make_job(database, tenant_id=tenant, queue="reports", lane_id=lane)


async def test_reports_that_wait_for_a_place_leave_the_slots_to_mail(database: Database) -> None:
    """They came first, and one of them may run."""
    tenant = await a_tenant(database, 10)
    report, mail = await a_report(database, tenant, 1), await make_job(database, tenant_id=tenant)
    worker = await make_worker(database, queues=["*"])
    await waiting(database, report, 50, scheduled_time=NOW - timedelta(hours=1))
    mails = await waiting(database, mail, 20)
    assert len(await admitted(database)) == 10
    assert (await ready(database, "reports"), await ready(database, "default")) == (1, 9)
    assert len(await claimed(database, worker, [report])) == 1
    assert len(await claimed(database, worker, [mail])) == 9
    await database.execute(END, mails[:9])
    assert len(await admitted(database, LATER)) == 9
    assert (await ready(database, "reports"), await ready(database, "default")) == (1, 8)
    assert await withdraw(database, LATER + timedelta(hours=1)) == 0, "one stands in line"


@pytest.mark.parametrize(("most", "stand"), [(0, 0), (1, 1), (3, 3), (50, 10), (None, 10)])
async def test_no_more_stand_ready_than_a_queue_has_places(
    database: Database, most: int | None, stand: int
) -> None:
    tenant = await a_tenant(database, 10)
    report = await a_report(database, tenant, most)
    await waiting(database, report, 20)
    assert len(await admitted(database)) == stand
    assert len(await admitted(database)) == 0


async def test_all_handlers_of_a_queue_share_its_places(database: Database) -> None:
    tenant = await a_tenant(database, 10)
    reports = [await a_report(database, tenant, 2, f"report-{number}") for number in range(6)]
    for report in reports:
        await waiting(database, report, 2)
    assert len(await admitted(database)) == 2
    assert len(await admitted(database)) == 0


async def test_each_tenant_stands_in_line_so_that_ranks_decide(database: Database) -> None:
    tenants = [await a_tenant(database, 10) for _ in range(3)]
    reports = [await a_report(database, tenant, 1) for tenant in tenants]
    for report in reports:
        await waiting(database, report, 5)
    worker = await make_worker(database, queues=["*"])
    assert len(await admitted(database)) == 3
    assert len(await claimed(database, worker, reports)) == 1
    assert await withdraw(database, LATER) == 0
    assert await ready(database, "reports") == 2


async def test_short_executions_find_their_successors_ready(database: Database) -> None:
    """Places that were taken just now may be free before the next look; others not."""
    tenant = await a_tenant(database, 100)
    report = await a_report(database, tenant, 4)
    worker = await make_worker(database, queues=["*"])
    await waiting(database, report, 40)
    assert len(await admitted(database)) == 4
    assert len(await claimed(database, worker, [report])) == 4
    assert len(await admitted(database, NOW + SECOND)) == 4
    assert len(await admitted(database, NOW + SECOND)) == 0


async def test_what_stands_in_a_full_queue_to_no_end_gives_its_slots_back(
    database: Database,
) -> None:
    """Four stood ready while short ones could have made room; those that run turn out to be long.
    When one of them is over, another may go at once."""
    tenant = await a_tenant(database, 8)
    report, mail = await a_report(database, tenant, 4), await make_job(database, tenant_id=tenant)
    worker = await make_worker(database, queues=["*"])
    await waiting(database, report, 40)
    await admitted(database)
    running = await claimed(database, worker, [report])
    assert len(await admitted(database)) == 4
    mails = await waiting(database, mail, 5)
    assert await admitted(database) == []
    assert await withdraw(database, NOW + SECOND) == 0, "they were let go just now"
    assert await withdraw(database, LATER) == 3
    assert await ready(database, "reports") == 1
    assert set(await admitted(database, LATER)) == set(mails[:3])
    assert await withdraw(database, LATER + timedelta(hours=1)) == 0
    over = [Outcome(each.execution_id, each.fence, ExecutionEvent.SUCCEED) for each in running[:2]]
    await finish(database, worker, over, LATER)
    await database.execute(END, mails)
    assert len(await admitted(database, LATER)) == 1, "one of two stands ready already"


async def test_a_lower_limit_of_a_queue_takes_slots_back(database: Database) -> None:
    tenant = await a_tenant(database, 10)
    report = await a_report(database, tenant, None)
    await waiting(database, report, 20)
    assert len(await admitted(database)) == 10
    await limit_queue(database, "reports", 4)
    assert await withdraw(database, LATER) == 0, "four places are free: workers have not come yet"
    await limit_queue(database, "reports", 0)
    assert await withdraw(database, NOW + SECOND) == 0
    assert await withdraw(database, LATER) == 10
    assert len(await admitted(database, LATER)) == 0
    await limit_queue(database, "reports", None)
    assert len(await admitted(database, LATER)) == 10


async def test_who_waits_for_a_worker_keeps_nobody_out_of_a_queue_with_free_places(
    database: Database,
) -> None:
    """All workers that could run them are busy elsewhere; others of the same queue are not."""
    tenant = await a_tenant(database, 100)
    slow = await a_report(database, tenant, 3, "slow")
    quick = await a_report(database, tenant, 3, "quick")
    await waiting(database, slow, 20, scheduled_time=NOW - timedelta(hours=1))
    assert len(await admitted(database)) == 3
    rows = await waiting(database, quick, 20)
    assert await admitted(database) == [], "they may be claimed at any moment"
    assert set(await admitted(database, LATER)) == set(rows[:3])
