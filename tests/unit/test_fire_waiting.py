"""Firing waits for the next due time: never too short, and no longer than it must."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from foliot.core.ids import JobId, TenantId
from foliot.core.model import Schedule, ScheduleType
from foliot.core.schedule.occurrences import ScheduleFacts
from foliot.runtime.server_time import ServerTime
from foliot.scheduler.fire import SPACING_SECONDS, WAIT_SECONDS_MAX, Fire
from foliot.scheduler.firing import Firing
from foliot.scheduler.staged import Staged
from foliot.store.database import Database
from foliot.store.staging import DueJob
from foliot.testing.clock import ManualClock

NOON = datetime(2027, 1, 1, 12, tzinfo=UTC)


class Node:
    """A scheduler without a database: what it asks takes a tenth of a second to answer."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.time = ServerTime(self._ask, self.clock)
        self.staged = Staged()
        nowhere = Database("postgresql://nobody@nowhere/nothing")
        self.fire = Fire(self.clock, self.time, self.staged, Firing(nowhere, self.server_now))

    def server_now(self) -> datetime:
        return NOON + timedelta(seconds=self.clock.seconds)

    async def _ask(self) -> datetime:
        await self.clock.sleep(0.1)
        return self.server_now()

    def stage(self, number: int, seconds: float) -> None:
        instant, job_id = NOON + timedelta(seconds=seconds), JobId(UUID(int=number))
        schedule = Schedule(ScheduleType.ONE_TIME, run_at=instant)
        tenant, facts = TenantId(UUID(int=0)), ScheduleFacts(job_id, NOON)
        job = DueJob(job_id, tenant, "default", instant, instant, 1, schedule, facts)
        self.staged.offer([job], 0)

    async def wait(self) -> float:
        """How long it waits."""
        began = self.clock.seconds
        await self.fire.wait()
        return self.clock.seconds - began


@pytest.fixture
async def node() -> Node:
    made = Node()
    await made.time.learn()
    return made


async def test_with_nothing_to_do_it_looks_once_in_a_while(node: Node) -> None:
    assert await node.wait() == pytest.approx(WAIT_SECONDS_MAX)


async def test_it_waits_until_the_first_is_due_without_a_doubt(node: Node) -> None:
    node.stage(1, 0.9)
    await node.fire.wait()  # something earlier has come
    await node.fire.wait()
    assert node.time.past() >= NOON + timedelta(seconds=0.9)
    assert node.clock.seconds < 0.9 + 0.11


async def test_what_is_far_away_is_not_waited_for_at_one_go(node: Node) -> None:
    node.stage(1, 60)
    await node.fire.wait()
    assert await node.wait() == pytest.approx(WAIT_SECONDS_MAX)


async def test_passes_keep_a_distance(node: Node) -> None:
    await node.fire.run_once()
    node.stage(1, 0)
    assert await node.wait() == pytest.approx(SPACING_SECONDS)
    node.clock.seconds += 1
    assert await node.wait() == 0
