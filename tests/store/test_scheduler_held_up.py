"""Fires that were on their way when the database stood still: by then they may be misfires."""

from contextlib import suppress
from datetime import datetime, timedelta

import pytest

from foliot.core.model import MisfirePolicy, Schedule, ScheduleType
from foliot.store.database import Database
from foliot.store.errors import TransactionConflict
from foliot.store.server_clock import read_clock
from foliot.testing.jobs import create_job, new_job, outcomes
from foliot.testing.schedulers import ManualScheduler

LATE = timedelta(minutes=2)
HOURLY = Schedule(ScheduleType.INTERVAL, interval_seconds=3600, misfire_policy=MisfirePolicy.SKIP)


@pytest.mark.parametrize("swept", [False, True])
async def test_a_fire_that_was_held_up_is_decided_anew(
    database: Database, monkeypatch: pytest.MonkeyPatch, swept: bool
) -> None:
    instant = await read_clock(database) - LATE
    stored = await create_job(database, new_job(HOURLY), instant - timedelta(hours=1))
    node = ManualScheduler(database)
    if not swept:
        await node.share(instant)

    async def believe(told: datetime) -> None:
        async def tell() -> datetime:
            return told

        monkeypatch.setattr(node.time, "_ask", tell)
        node.time.forget()
        await node.time.learn()

    async def fire() -> None:
        if swept:
            await node.sweep.run_once()  # looks on first
            await node.sweep.run_once()
        else:
            await node.at_hand.run_once()
            await node.fires.run_once()

    await believe(instant + timedelta(seconds=4))
    with suppress(TransactionConflict):
        await fire()
    assert await outcomes(database, stored.job) == []
    await believe(await read_clock(database))
    await fire()
    assert await outcomes(database, stored.job) == [(instant, "MISFIRE 1")]
