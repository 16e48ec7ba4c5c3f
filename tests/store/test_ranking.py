"""Ranks in SQL follow the rule of the core, nodes share one account, old marks are forgotten."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.core.ids import ExecutionId, TenantId
from foliot.core.rank import Flow, RankFacts, assign_ranks, lane_time
from foliot.store.claiming import ClaimRequest, claim
from foliot.store.database import Database
from foliot.store.enqueuing import Request, Wanted, enqueue
from foliot.store.queue_clocks import forget_clocks
from foliot.testing.database import DatabaseFactory, sql
from foliot.testing.rows import NOW, insert_rows, make_job, make_lane, make_tenant, make_worker

SECOND = timedelta(seconds=1)
WEIGHTS = {TenantId(UUID(int=n)): weight for n, weight in enumerate([10.0, 3.0, 1.0, 0.25], 1)}
TENANTS = [*WEIGHTS, TenantId(UUID(int=99))]  # the last one is not in the table: it weighs 1
QUEUE_UP = sql("""
select foliot.queue_up(array(select e.ctid from unnest($1::uuid[]) with ordinality x(id, n)
                               join foliot.executions e on e.id = x.id order by x.n),
                       statement_timestamp())
""")
RANKS = sql("""
select e.rank from unnest($1::uuid[]) with ordinality x(id, n)
  join foliot.executions e on e.id = x.id order by x.n
""")
NUMBERS = count(1)


@dataclass(frozen=True)
class Row:
    lane: int  # 0 to 2 of the queue at hand
    flow: Flow
    distance: float = 0.0  # of a waiting row from its lane's virtual time


FLOWS = st.builds(Flow, st.sampled_from(TENANTS), st.integers(1, 10))
LANES = st.integers(0, 2)
WAITING = st.lists(st.builds(Row, LANES, FLOWS, st.floats(0.001, 50)), max_size=15)
BATCH = st.lists(st.builds(Row, LANES, FLOWS), min_size=1, max_size=20)
LANE_TIMES = st.lists(st.none() | st.floats(0, 100), min_size=3, max_size=3)


def expected_ranks(
    lane_times: Sequence[float | None], waiting: Sequence[Row], batch: Sequence[Row]
) -> list[float]:
    """What the core says. Rows that a fast lane's time has overtaken no longer share."""
    virtual_time = max((time for time in lane_times if time is not None), default=0.0)
    ranks = [(lane_times[row.lane] or 0.0) + row.distance for row in waiting]
    last: dict[Flow, float] = {}
    for row, rank in zip(waiting, ranks, strict=True):
        last[row.flow] = max(rank, last.get(row.flow, rank))
    asked = {row.flow for row in batch}
    active = {flow: rank for flow, rank in last.items() if rank > virtual_time or flow in asked}
    found = []
    for place, row in enumerate(batch):
        head = min(
            (r for w, r in zip(waiting, ranks, strict=True) if w.lane == row.lane), default=None
        )
        facts = RankFacts(lane_time(virtual_time, head), active, WEIGHTS)
        found.append(assign_ranks(facts, [each.flow for each in batch])[place])
    return found


async def ranks_in_sql(
    database: Database,
    lane_times: Sequence[float | None],
    waiting: Sequence[Row],
    batch: Sequence[Row],
) -> list[float]:
    queue = f"queue-{next(NUMBERS)}"
    lanes = [await make_lane(database, queue, handler=str(n)) for n in range(3)]
    clocks = [
        {"queue": queue, "lane_id": lane, "virtual_time": time, "at": NOW}
        for lane, time in zip(lanes, lane_times, strict=True)
        if time is not None
    ]
    if clocks:
        await insert_rows(database, "queue_clocks", clocks)
    rows = [
        live_row(queue, lanes[row.lane], row.flow, (lane_times[row.lane] or 0.0) + row.distance)
        for row in waiting
    ]
    due = [live_row(queue, lanes[row.lane], row.flow, None) for row in batch]
    await insert_rows(database, "executions", rows + due)
    ids = [row["id"] for row in due]
    await database.fetch(QUEUE_UP, ids)
    return [row["rank"] for row in await database.fetch(RANKS, ids)]


def live_row(queue: str, lane_id: int, flow: Flow, rank: float | None) -> dict[str, object]:
    return {
        "id": UUID(int=next(NUMBERS)), "tenant_id": flow.tenant_id, "job_id": UUID(int=1),
        "job_version": 1, "status": "QUEUED", "trigger": "ENQUEUE", "queue": queue,
        "lane_id": lane_id, "priority": flow.priority, "rank": rank, "scheduled_time": NOW,
        "attempt_number": 0, "fence": 0, "crash_count": 0, "run_alone": False, "notify": False,
        "available_at": NOW, "job_name": "j", "created_at": NOW,
    }  # fmt: skip


def test_the_database_ranks_as_the_core_says(server: DatabaseFactory) -> None:
    with asyncio.Runner() as runner:
        database = Database(runner.run(server.create()))
        runner.run(database.open())
        for tenant, weight in WEIGHTS.items():
            runner.run(make_tenant(database, id=tenant, weight=weight))

        @settings(deadline=None, max_examples=150, database=None)
        @given(LANE_TIMES, WAITING, BATCH)
        def check(lane_times: list[float | None], waiting: list[Row], batch: list[Row]) -> None:
            found = runner.run(ranks_in_sql(database, lane_times, waiting, batch))
            assert found == pytest.approx(expected_ranks(lane_times, waiting, batch), rel=1e-9)

        check()
        runner.run(database.close())


async def test_four_nodes_that_enqueue_at_once_get_one_share(
    database: Database, database_url: str
) -> None:
    """Each batch goes behind the last one of the flow, whoever sent it."""
    tenant = await make_tenant(database, weight=1.0)
    job = await make_job(database, tenant_id=tenant)
    wanted = [Wanted(job.job_id)] * 10

    async def send(node: Database, name: str) -> None:
        for n in range(10):
            await enqueue(node, Request(tenant, "bulk", f"{name}-{n}", NOW), wanted, NOW)

    async with (
        Database(database_url) as one,
        Database(database_url) as two,
        Database(database_url) as three,
    ):
        nodes = {"a": database, "b": one, "c": two, "d": three}
        await asyncio.gather(*(send(node, name) for name, node in nodes.items()))
    ranks = await database.fetch(sql("select rank from foliot.executions order by rank"))
    assert [row["rank"] for row in ranks] == [float(n) for n in range(1, 401)]


async def add_clocks(database: Database, lane: int, *marks: tuple[float, float]) -> None:
    """Virtual time and age in seconds of each."""
    rows = [
        {"queue": "default", "lane_id": lane, "virtual_time": time, "at": NOW - age * SECOND}
        for time, age in marks
    ]
    await insert_rows(database, "queue_clocks", rows)


async def test_of_each_lane_the_marks_in_use_are_kept(database: Database) -> None:
    fast, slow, idle = [await make_lane(database, handler=name) for name in ("f", "s", "i")]
    await add_clocks(database, fast, (1, 40), (2, 30), (3, 20), (4, 9), (5, 1))
    await add_clocks(database, slow, (9, 90), (1, 80), (2, 70))  # a rescan found rows far behind
    await add_clocks(database, idle, (1, 900))
    assert await forget_clocks(database, NOW) == 3
    kept = await database.fetch(
        sql("select lane_id, virtual_time from foliot.queue_clocks order by 1, 2")
    )
    assert [tuple(row) for row in kept] == [
        (fast, 3), (fast, 4), (fast, 5), (slow, 2), (slow, 9), (idle, 1),
    ]  # fmt: skip


async def test_forgetting_goes_by_batches_over_all_lanes(database: Database) -> None:
    for name in ("one", "two"):
        lane = await make_lane(database, handler=name)
        await add_clocks(database, lane, *((float(n), 100.0 - n) for n in range(20)))
    assert [await forget_clocks(database, NOW, batch=16) for _ in range(4)] == [16, 16, 6, 0]


async def test_claims_find_every_row_while_marks_are_forgotten(
    database: Database, database_url: str
) -> None:
    """Also without ever looking below the low mark, and virtual time never goes back."""
    job = await make_job(database)
    worker = await make_worker(database)
    top = sql("select coalesce(max(virtual_time), 0) from foliot.queue_clocks")
    claimed: list[ExecutionId] = []
    furthest = 0.0
    async with Database(database_url) as other:
        for n in range(40):
            now = NOW + 11 * n * SECOND
            wanted = [Wanted(job.job_id)] * (20 if n < 30 else 1)
            asking = Request(job.tenant_id, "bulk", str(n), now)
            taking = ClaimRequest(worker, "default", [job.lane_id], 16)
            _, *taken, _ = await asyncio.gather(
                enqueue(database, asking, wanted, now),
                claim(database, taking, now),
                claim(other, taking, now),
                forget_clocks(other, now, batch=3),
            )
            claimed += [one.execution_id for batch in taken for one in batch]
            before, furthest = furthest, await database.fetch_value(top)
            assert furthest >= before
        while batch := await claim(database, taking, now):
            claimed += [one.execution_id for one in batch]
    assert len(claimed) == len(set(claimed)) == 610
