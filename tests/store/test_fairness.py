"""Whose turn it is, on the real tables: a tenant that floods delays itself, weights are kept by any
number of nodes, priorities divide a tenant's own share. By the order of claims, not the clock."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from itertools import count
from typing import Final

import pytest
import pytest_asyncio

from foliot.core.ids import TenantId, WorkerId
from foliot.core.states import ExecutionEvent
from foliot.store.claiming import ClaimRequest, claim
from foliot.store.connecting import ConnectionOptions
from foliot.store.database import Database
from foliot.store.enqueuing import Request, Wanted, enqueue
from foliot.store.finishing import Outcome, finish
from foliot.testing.database import sql
from foliot.testing.engine import LONG
from foliot.testing.rows import NOW, JobRow, make_job, make_tenant, make_worker

FLOOD: Final = 100_000 if LONG else 3_000
BULK: Final = 5_000
WHOSE: Final = sql(
    "select e.id, e.tenant_id, e.priority from foliot.executions e where e.id = any($1)"
)
NUMBERS = count(1)


class Ground:
    """Tenants with a job each, and one worker that takes a bite after another."""

    def __init__(self, database: Database, worker: WorkerId) -> None:
        self.database = database
        self.worker = worker
        self.jobs: dict[TenantId, JobRow] = {}

    async def add_tenant(self, weight: float = 1.0) -> TenantId:
        tenant = await make_tenant(self.database, weight=weight)
        self.jobs[tenant] = await make_job(self.database, tenant_id=tenant)
        return tenant

    async def send(
        self, tenant: TenantId, number: int, *priorities: int, by: Database | None = None
    ) -> None:
        """So many, of each priority in turn."""
        wanted = [
            Wanted(self.jobs[tenant].job_id, priority=priority)
            for _ in range(number)
            for priority in priorities or (5,)
        ]
        for start in range(0, len(wanted), BULK):
            request = Request(tenant, "test", str(next(NUMBERS)), NOW)
            await enqueue(by or self.database, request, wanted[start : start + BULK], NOW)

    async def serve(self, bite: int, by: Database | None = None) -> Counter[tuple[TenantId, int]]:
        """How many of each tenant and priority had their turn in one bite."""
        database = by or self.database
        lanes = sorted({job.lane_id for job in self.jobs.values()})
        claims = await claim(database, ClaimRequest(self.worker, "default", lanes, bite), NOW)
        rows = await database.fetch(WHOSE, [each.execution_id for each in claims])
        ends = [Outcome(each.execution_id, each.fence, ExecutionEvent.SUCCEED) for each in claims]
        await finish(database, self.worker, ends, NOW)
        return Counter((row["tenant_id"], row["priority"]) for row in rows)


@pytest_asyncio.fixture
async def ground(database: Database) -> AsyncIterator[Ground]:
    yield Ground(database, await make_worker(database))


async def shares(ground: Ground, turns: int, bite: int) -> Mapping[TenantId, int]:
    served = Counter[tuple[TenantId, int]]()
    while served.total() < turns:
        served += await ground.serve(bite)
    by_tenant = Counter[TenantId]()
    for (tenant, _), number in served.items():
        by_tenant[tenant] += number
    return by_tenant


@pytest.mark.timeout(300)
async def test_twenty_small_tenants_do_not_stand_behind_a_flood(ground: Ground) -> None:
    """Whenever they come, three each are served within the next turns of all: as if the flood were
    one more of them."""
    flood = await ground.add_tenant()
    await ground.send(flood, FLOOD)
    small = [await ground.add_tenant() for _ in range(20)]
    for _ in range(3):
        await ground.serve(50)
        for tenant in small:
            await ground.send(tenant, 3)
        turns = served = 0
        while served < 60:
            bite = await ground.serve(7)
            turns += bite.total()
            served += bite.total() - bite[flood, 5]
        assert turns <= 60 + 3 + 1 + 7


@pytest.mark.timeout(300)
async def test_a_flood_of_many_priorities_has_one_share(ground: Ground) -> None:
    flood, small = await ground.add_tenant(), await ground.add_tenant()
    await ground.send(flood, 200, *range(1, 11))
    await ground.send(small, 300)
    served = await shares(ground, 400, 20)
    assert served[small] == pytest.approx(200, rel=0.1)


@pytest.mark.timeout(300)
async def test_two_floods_are_served_ten_to_one_by_many_nodes_that_come_and_go(
    ground: Ground, database_url: str
) -> None:
    rich, poor = await ground.add_tenant(10.0), await ground.add_tenant(1.0)
    served = Counter[TenantId]()
    for _ in range(3):  # each time with other nodes
        async with AsyncExitStack() as stack:
            nodes = [
                await stack.enter_async_context(
                    Database(database_url, ConnectionOptions(max_connections=2))
                )
                for _ in range(4)
            ]
            await asyncio.gather(
                *(ground.send(rich, 150, by=node) for node in nodes),
                *(ground.send(poor, 50, by=node) for node in nodes),
            )
            for node in nodes * 5:
                for (tenant, _), number in (await ground.serve(20, by=node)).items():
                    served[tenant] += number
    assert served.total() == 1200
    assert served[rich] / served[poor] == pytest.approx(10, rel=0.1)


async def test_the_most_urgent_has_thirty_two_turns_for_one_of_the_least(ground: Ground) -> None:
    tenant = await ground.add_tenant()
    for _ in range(4):
        await ground.send(tenant, 500, 1, 10)
    served = Counter[tuple[TenantId, int]]()
    while served.total() < 1650:
        served += await ground.serve(50)
    assert served[tenant, 1] / served[tenant, 10] == pytest.approx(32, rel=0.1)


async def test_idle_capacity_is_used_by_whoever_is_there(ground: Ground) -> None:
    rich, poor = await ground.add_tenant(10.0), await ground.add_tenant(1.0)
    await ground.send(poor, 100)
    assert (await ground.serve(60)).total() == 60
    await ground.send(rich, 10)
    assert (await ground.serve(60)).total() == 50, "nobody waits while there is work"
