"""Limits hold under any crash and any number of admitters, and a full one blocks nobody else."""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from foliot.core.ids import ExecutionId, JobId, TenantId, WorkerId
from foliot.core.limits import job_limit, key_limit, tenant_limit
from foliot.core.states import ExecutionEvent
from foliot.store.admitting import STRANDED_SECONDS, Place, admit_held, put_limits, withdraw
from foliot.store.claiming import ClaimRequest, claim
from foliot.store.connecting import ConnectionOptions
from foliot.store.database import Database
from foliot.store.finishing import Outcome, finish
from foliot.store.queues import pause_queue
from foliot.store.releasing import release_due
from foliot.testing.database import sql
from foliot.testing.flaky_nodes import FlakyNode, flaky_options, run_killing, runs
from foliot.testing.rows import (
    DEFAULT_TENANT,
    NOW,
    ExecutionRow,
    JobRow,
    make_executions,
    make_job,
    make_lane,
    make_tenant,
    make_worker,
)
from foliot.testing.running import until_blocked
from foliot.testing.spans import most_at_once

EVENTS = [
    ExecutionEvent.SUCCEED,
    ExecutionEvent.FAIL,
    ExecutionEvent.RETRY,
    ExecutionEvent.HAND_BACK,
]
END = sql("delete from foliot.executions where id = $1")
HOLDERS = sql("select count(*) from foliot.executions where rank is not null")
ADMIT = sql("update foliot.executions set status = 'QUEUED', hold = null, rank = 1 where id = $1")
RUN = "update foliot.executions set status = 'RUNNING', worker_id = gen_random_uuid() where id = $1"


async def waiting(
    database: Database,
    job: JobRow,
    number: int,
    *keys: str,
    **changes: Any,  # noqa: ANN401 - a value for any column
) -> list[ExecutionRow]:
    return await make_executions(
        database, job, number, status="WAITING", hold="LIMIT", limit_keys=list(keys), **changes
    )


async def limit(database: Database, **limits: int) -> None:
    """By short names: `a=3` limits the key `key:a` to three."""
    for name, most in limits.items():
        await database.execute(
            sql("insert into foliot.limits values ($1, $2)"), f"key:{name}", most
        )


def ids(*rows: Sequence[ExecutionRow]) -> set[ExecutionId]:
    return {row.execution_id for group in rows for row in group}


async def admitted(database: Database) -> set[ExecutionId]:
    return set((await admit_held(database, now=NOW)).admitted)


async def test_as_many_go_as_there_are_slots_the_oldest_first(database: Database) -> None:
    job = await make_job(database)
    await limit(database, a=3)
    rows = await waiting(database, job, 5, "key:a")
    assert await admitted(database) == ids(rows[:3])
    assert await admitted(database) == set()
    (row, *_) = await database.fetch(
        sql("select * from foliot.executions where rank is not null order by rank")
    )
    assert (row["id"], row["status"], row["hold"]) == (rows[0].execution_id, "QUEUED", None)
    assert row["queued_at"] == NOW


async def test_slots_are_drawn_by_urgency_and_nobody_starves(database: Database) -> None:
    """Of 32 + 1 draws one goes to the least urgent, who has waited longest."""
    job = await make_job(database)
    await limit(database, a=1)
    drawn = Counter[int]()
    first = dict.fromkeys((1, 10), 0)
    waits = {
        priority: [row.execution_id for row in rows]
        for priority in (10, 1)
        for rows in [await waiting(database, job, 660, "key:a", priority=priority)]
    }
    for number in range(660):
        report = await admit_held(database, chance=number / 660, now=NOW)
        (gone,) = report.admitted
        priority = 1 if gone in waits[1] else 10
        assert waits[priority][first[priority]] == gone, "the longest due of its priority"
        first[priority] += 1
        drawn[priority] += 1
        await database.execute(END, gone)
    assert 14 <= drawn[10] <= 26, "20 are expected"


@pytest.mark.parametrize(
    ("change", "again"),
    [
        ("delete from foliot.executions where id = $1", 1),
        ("update foliot.executions set rank = null where id = $1", 1),
        (RUN, 0),
    ],
)
async def test_a_slot_comes_back_when_its_holder_leaves(
    database: Database, change: str, again: int
) -> None:
    job = await make_job(database)
    await limit(database, a=1)
    rows = await waiting(database, job, 2, "key:a")
    assert await admitted(database) == ids(rows[:1])
    await database.execute(sql(change), rows[0].execution_id)
    assert len(await admitted(database)) == again


async def test_a_row_goes_only_when_every_one_of_its_keys_has_room(database: Database) -> None:
    job = await make_job(database)
    await limit(database, a=2, b=1, c=0, d=9)
    both = await waiting(database, job, 2, "key:a", "key:b")
    await waiting(database, job, 2, "key:d", "key:c")
    await waiting(database, job, 2, "key:c", "key:d")
    alone = await waiting(database, job, 2, "key:a")
    assert await admitted(database) == ids(both[:1], alone[:1])


async def test_a_full_key_does_not_block_rows_under_others(database: Database) -> None:
    job = await make_job(database)
    await limit(database, t=2, a=0, b=5)
    await waiting(database, job, 50, "key:t", "key:a", priority=1)
    behind = await waiting(database, job, 3, "key:t", "key:b")
    free = await waiting(database, job, 2, "key:z")
    assert await admitted(database) == ids(behind[:2], free), "key:z has no limit any more"


async def test_what_nobody_is_there_to_run_takes_no_slot(database: Database) -> None:
    """It came first and is the more urgent: no worker has its label, or its queue is paused."""
    tenant = await make_tenant(database)
    gpu = await make_lane(database, requires=["gpu"])
    await make_lane(database, "other")
    stuck = await make_job(database, tenant_id=tenant, lane_id=gpu, priority=1)
    paused = await make_job(database, tenant_id=tenant, queue="other", priority=1)
    free = await make_job(database, tenant_id=tenant, priority=10)
    await pause_queue(database, "other")
    await put_limits(database, [tenant_limit(tenant, 1)])
    key = f"tenant:{tenant}"
    await waiting(database, stuck, 3, key)
    await waiting(database, paused, 3, key)
    rows = await waiting(database, free, 3, key)
    await make_worker(database, queues=["*"])
    await make_worker(database, queues=["*"], labels=["gpu"], tenant_id=DEFAULT_TENANT)
    assert await admitted(database) == ids(rows[:1])
    await database.execute(END, rows[0].execution_id)
    await make_worker(database, labels=["gpu"])
    await database.execute(sql("delete from foliot.executions where job_id = $1"), free.job_id)
    assert len(await admitted(database)) == 1, "somebody has the label now"


async def test_slots_of_what_nobody_is_there_to_run_go_to_others(database: Database) -> None:
    tenant = await make_tenant(database)
    gpu = await make_lane(database, requires=["gpu"])
    stuck = await make_job(database, tenant_id=tenant, lane_id=gpu)
    free = await make_job(database, tenant_id=tenant)
    await put_limits(database, [tenant_limit(tenant, 3)])
    key, later = f"tenant:{tenant}", NOW + timedelta(seconds=STRANDED_SECONDS)
    await make_worker(database)
    worker = await make_worker(database, labels=["gpu"])
    await waiting(database, stuck, 3, key)
    assert len(await admitted(database)) == 3
    (running,) = await claim(database, ClaimRequest(worker, "default", [gpu], 1), NOW)
    rows = await waiting(database, free, 3, key)
    assert await withdraw(database, later) == 0, "its worker is there"
    await database.execute(sql("update foliot.workers set status = 'DEAD' where id = $1"), worker)
    assert await withdraw(database, later - timedelta(seconds=1)) == 0, "another may come"
    assert await withdraw(database, later) == 2
    assert await admitted(database) == ids(rows[:2])
    (still,) = await database.fetch(
        sql("select status, rank from foliot.executions where id = $1"), running.execution_id
    )
    assert still["status"] == "RUNNING"
    assert still["rank"] is not None
    assert await withdraw(database, later) == 0


async def test_rows_of_several_lists_share_a_key_in_one_order(database: Database) -> None:
    job = await make_job(database)
    await limit(database, t=4, a=9, b=9)
    start = NOW - timedelta(minutes=1)
    late = await waiting(
        database, job, 4, "key:t", "key:a", scheduled_time=start + timedelta(seconds=5)
    )
    early = await waiting(database, job, 3, "key:t", "key:b", scheduled_time=start)
    assert await admitted(database) == ids(early, late[:1])


async def test_a_row_in_use_is_passed_over(database: Database, database_url: str) -> None:
    job = await make_job(database)
    await limit(database, a=3)
    rows = await waiting(database, job, 2, "key:a")
    async with Database(database_url) as other, other.transaction() as session:
        await session.execute(
            sql("select from foliot.executions where id = $1 for no key update"),
            rows[0].execution_id,
        )
        assert await admitted(database) == ids(rows[1:])


async def test_other_holds_are_not_its_business(database: Database) -> None:
    job = await make_job(database)
    await limit(database, a=3)
    await make_executions(database, job, 2, status="WAITING", hold="EVENT", limit_keys=["key:a"])
    assert await admitted(database) == set()


async def test_a_long_walk_goes_on_where_it_stopped(database: Database) -> None:
    job = await make_job(database)
    await limit(database, **{f"k{n:03}": 1 for n in range(250)})
    for n in range(250):
        await waiting(database, job, 2, f"key:k{n:03}")
    after: Place | None = None
    found: list[ExecutionId] = []
    pages = 0
    while pages == 0 or after is not None:
        report = await admit_held(database, after, now=NOW)
        found, after, pages = [*found, *report.admitted], report.after, pages + 1
    assert (len(set(found)), len(found), pages) == (250, 250, 3)


async def test_limits_are_set_raised_and_lifted(database: Database) -> None:
    tenant = await make_tenant(database)
    of_a_job = job_limit(tenant, JobId(UUID(int=3)), "name", 3)
    await put_limits(database, [of_a_job, tenant_limit(tenant, 4)])
    await put_limits(database, [tenant_limit(tenant, 5)], lifted=[of_a_job.key])
    rows = await database.fetch(sql("select key, max_running from foliot.limits"))
    assert [tuple(row) for row in rows] == [(f"tenant:{tenant}", 5)]


async def test_keys_of_two_tenants_never_meet(database: Database) -> None:
    job = await make_job(database)
    others = TenantId(UUID(int=7))
    await put_limits(database, [key_limit(DEFAULT_TENANT, "k", 1), key_limit(others, "k", 1)])
    mine = await waiting(database, job, 1, f"key:{DEFAULT_TENANT}:k")
    theirs = await waiting(database, job, 1, f"key:{others}:k", tenant_id=others)
    assert await admitted(database) == ids(mine, theirs)


async def test_eight_admitters_never_give_out_a_slot_twice(
    database: Database, database_url: str
) -> None:
    job = await make_job(database)
    await limit(database, a=3, b=2)
    await waiting(database, job, 30, "key:a")
    await waiting(database, job, 30, "key:a", "key:b")
    await waiting(database, job, 30, "key:b")
    async with Database(database_url, ConnectionOptions(max_connections=8)) as nodes:
        await asyncio.gather(*(admit_held(nodes, now=NOW) for _ in range(24)))
    for key, most in (("key:a", 3), ("key:b", 2)):
        holders = sql(
            "select count(*) from foliot.executions where rank is not null and $1 = any(limit_keys)"
        )
        assert await database.fetch_value(holders, key) == most


async def test_who_gives_out_slots_of_a_key_waits_for_who_does_already(
    database: Database, database_url: str
) -> None:
    """What another has given out and not yet committed is counted."""
    job = await make_job(database)
    await limit(database, a=1)
    (first,) = await waiting(database, job, 1, "key:a")
    async with Database(database_url) as other, other.transaction() as session:
        await session.execute(sql("select foliot.lock_limits(array['key:a'])"))
        await session.execute(ADMIT, first.execution_id)
        await waiting(database, job, 1, "key:a")
        second = asyncio.create_task(admitted(database))
        await until_blocked(session, second)
    assert await second == set()


class Node(FlakyNode):
    """Admits, claims, ends and releases."""

    def __init__(self, flaky: Database, steady: Database, job: JobRow, seed: int) -> None:
        super().__init__(flaky, steady)
        self.job, self.random = job, random.Random(seed)

    async def take_turn(self, worker: WorkerId) -> None:
        await admit_held(self.flaky)
        wanted = ClaimRequest(worker, "default", [self.job.lane_id], 2)
        for claimed in await claim(self.flaky, wanted):
            event = self.random.choice(EVENTS)
            outcome = Outcome(claimed.execution_id, claimed.fence, event)
            await finish(self.flaky, worker, [outcome])
        await release_due(self.flaky)


async def test_a_limit_of_three_is_never_four_whoever_is_killed(
    database: Database, database_url: str
) -> None:
    job = await make_job(database)
    await limit(database, a=3)
    await waiting(database, job, 60, "key:a")

    async def look() -> None:
        for _ in range(20):
            assert await database.fetch_value(HOLDERS) <= 3

    async with Database(database_url, flaky_options(8)) as flaky:
        killed = await run_killing([Node(flaky, database, job, n) for n in range(8)], 20, look)
    ran = await runs(database)
    assert len(ran) >= 60
    assert killed > 0
    assert most_at_once(ran) <= 3


async def test_rows_that_wait_under_a_full_key_are_not_walked(database: Database) -> None:
    """Also when the statistics are those of an empty table."""
    job = await make_job(database)
    await limit(database, full=0, room=9)
    await database.execute(sql("analyze foliot.executions"))
    await database.execute(CROWD, job.tenant_id, job.job_id, job.lane_id)
    rows = await waiting(database, job, 3, "key:room")
    before = await entries_read(database)
    assert await admitted(database) == ids(rows)
    assert await entries_read(database) - before < 100


CROWD = sql("""
insert into foliot.executions
  (id, tenant_id, job_id, job_version, status, hold, trigger, queue, lane_id, priority,
   scheduled_time, available_at, limit_keys, job_name, created_at)
select gen_random_uuid(), $1, $2, 1, 'WAITING', 'LIMIT', 'ENQUEUE', 'default', $3, 1,
       statement_timestamp(), statement_timestamp(), array['key:full'], 'j', statement_timestamp()
  from generate_series(1, 20000)
""")


async def entries_read(database: Database) -> int:
    """What scans have read of the live table's indexes; sessions report when they are told to."""
    async with database.connection() as session:
        await session.execute(sql("select pg_stat_force_next_flush()"))
    read = await database.fetch_value(
        sql(
            "select sum(idx_tup_read)::bigint from pg_stat_all_indexes where relname = 'executions'"
        )
    )
    return int(read)
