"""The hot statements stay fast: on a crowd of rows, whatever the statistics say, a batch reads a
number of rows and pages that depends on the batch alone.

A call is repeated until the plans that its session keeps are the generic ones; then one more is
measured by what it made the server read. No table may be scanned from end to end.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final
from uuid import UUID, uuid4

import asyncpg
import pytest

from foliot.core.ids import JobId, scheduled_execution
from foliot.store.statements import statement
from foliot.testing.rows import DEFAULT_TENANT, NOW
from foliot.testing.touched import measure

BATCH: Final = 100
# A session plans anew for each of the first five calls, and then keeps the generic plan.
WARMING_CALLS: Final = 6
DAY: Final = timedelta(days=1)
SMALL: Final = {"lanes", "queues", "workers", "limits", "tenants", "calendars"}
LOWEST: Final = UUID(int=0)

Arguments = tuple[object, ...]


# Which jobs have an execution of this kind, from the first on.
FIRST: Final = {"queued": 30_000, "running": 41_000, "lost": 61_000}
FIND_JOBS: Final = """
select j.id, j.next_instant from foliot.jobs j
 where j.tenant_id = $1 and j.status = 'ACTIVE' and j.name = any($2::text[]) order by j.id"""
FIND_EXECUTIONS: Final = """
select e.id from foliot.executions e where e.job_id = any($1::uuid[]) order by e.id"""


async def jobs(db: asyncpg.Connection, number: int, first: int = 1) -> list[asyncpg.Record]:
    """The n-th hundred of them, in the order of their ids."""
    names = [f"job-{first + number * BATCH + offset}" for offset in range(BATCH)]
    return await db.fetch(FIND_JOBS, DEFAULT_TENANT, names)


async def ids(db: asyncpg.Connection, kind: str, number: int) -> list[UUID]:
    found = await jobs(db, number, FIRST[kind])
    return [row["id"] for row in await db.fetch(FIND_EXECUTIONS, [row["id"] for row in found])]


async def worker(db: asyncpg.Connection, name: str) -> UUID:
    found = await db.fetchval("select id from foliot.workers where name = $1", name)
    assert isinstance(found, UUID)
    return found


async def fire(db: asyncpg.Connection, number: int) -> Arguments:
    rows = await jobs(db, number)
    job_ids, instants = [row["id"] for row in rows], [row["next_instant"] for row in rows]
    return (
        job_ids,
        [DEFAULT_TENANT] * BATCH,
        ["default"] * BATCH,
        instants,
        [1] * BATCH,
        [instant + 9 * DAY for instant in instants],
        *([None] * BATCH,) * 3,
        list(range(1, BATCH + 1)),
        [scheduled_execution(JobId(job), at) for job, at in zip(job_ids, instants, strict=True)],
        instants,
        [None] * BATCH,
        list(range(1, BATCH + 1)),
        [instant - DAY for instant in instants],
        [instant - DAY for instant in instants],
        [1] * BATCH,
        ["MISFIRE"] * BATCH,
        False,
        False,
        NOW,
    )


async def enqueue(db: asyncpg.Connection, number: int) -> Arguments:
    rows = await jobs(db, number)
    none = [None] * BATCH
    request = (DEFAULT_TENANT, "test", str(uuid4()), b"")
    asked = ([uuid4() for _ in rows], [row["id"] for row in rows], ["API"] * BATCH)
    keys = [f"unique-{position}" for position in range(BATCH)]
    return (*request, *asked, *(none,) * 10, keys, *(none,) * 3, NOW)


async def claim(db: asyncpg.Connection, _: int) -> Arguments:
    return await worker(db, "busy"), "default", [1], BATCH, False, NOW


async def read_claimed(db: asyncpg.Connection, number: int) -> Arguments:
    return await worker(db, "busy"), await ids(db, "running", number), [1] * BATCH


async def read_outcomes(db: asyncpg.Connection, number: int) -> Arguments:
    return await worker(db, "busy"), await ids(db, "running", number), [1] * BATCH, NOW


async def finish(db: asyncpg.Connection, number: int) -> Arguments:
    none = [None] * BATCH
    events = ["SUCCEED", "RETRY", "SNOOZE", "HAND_BACK"] * (BATCH // 4)
    held = (await worker(db, "busy"), await ids(db, "running", number), [1] * BATCH, events)
    return (*held, none, [False] * BATCH, *(none,) * 3, [1.0] * BATCH, none, none, NOW)


async def rescue(db: asyncpg.Connection, number: int) -> Arguments:
    none = [None] * BATCH
    lost = (await ids(db, "lost", number), [1] * BATCH, [await worker(db, "dead")] * BATCH)
    return (*lost, ["LOSE"] * BATCH, [1] * BATCH, none, [0.0] * BATCH, none, none, NOW)


async def cancel(db: asyncpg.Connection, number: int) -> Arguments:
    return DEFAULT_TENANT, await ids(db, "queued", number), '{"type": "CANCELLED"}', NOW


async def stage(_: asyncpg.Connection, __: int) -> Arguments:
    return list(range(64)), NOW - timedelta(seconds=500), NOW, BATCH


def constantly(*arguments: object) -> Callable[[asyncpg.Connection, int], Awaitable[Arguments]]:
    async def same(_: asyncpg.Connection, __: int) -> Arguments:
        return arguments

    return same


# By statement: its arguments for each call, rows to come back, most index entries, most pages. The
# limits are about twice what was measured; one look at the crowd would be a hundred times as much.
# What earlier calls of the same transaction took is still in the way, as under a pinned snapshot.
HOT: Final = {
    "jobs/fire_due": (fire, BATCH, 400, 9_000),
    "jobs/stage_due": (stage, BATCH, 1_200, 2_400),
    "executions/enqueue": (enqueue, BATCH, 1_200, 6_000),
    "executions/claim_ready": (claim, BATCH, 1_000, 3_000),
    "executions/read_claimed": (read_claimed, BATCH, 400, 1_600),
    "executions/read_outcomes": (read_outcomes, BATCH, 400, 1_600),
    "executions/finish": (finish, BATCH, 600, 5_000),
    "executions/rescue": (rescue, BATCH, 1_000, 10_000),
    "executions/release_due": (constantly(None, BATCH, NOW), 1, 1_600, 4_000),
    "executions/release_overlaps": (constantly(None, BATCH, NOW), 1, 3_000, 8_000),
    "executions/expire": (constantly(BATCH, "{}", "late", NOW), BATCH, 1_600, 6_000),
    "executions/cancel": (cancel, BATCH, 600, 6_000),
    "limits/admit_held": (constantly([], BATCH, BATCH, BATCH, NOW), 1, 5_500, 28_000),
    # These two sort what one worker holds, which its capacity bounds: here 20,000 and 10,000.
    "executions/list_lost": (constantly(LOWEST, LOWEST, BATCH), BATCH, 21_000, 5_000),
    "executions/list_overdue": (
        constantly(LOWEST, LOWEST, BATCH, NOW + DAY), BATCH, 62_000, 125_000,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOT)
async def test_a_batch_reads_no_more_than_its_own_rows(
    crowd: asyncpg.Connection, name: str
) -> None:
    arguments, rows, entries, blocks = HOT[name]
    text = statement(name).sql
    for number in range(WARMING_CALLS):
        await crowd.fetch(text, *await arguments(crowd, number))
    found, touched = await measure(crowd, text, *await arguments(crowd, WARMING_CALLS))
    assert found == rows
    assert not set(touched.scans) - SMALL
    assert touched.entries.total() <= entries, touched.entries
    assert touched.blocks <= blocks
