"""What nobody is there to run is counted and said, once a minute for each lane."""

import logging
from collections.abc import Iterator
from datetime import timedelta

import pytest

from foliot.core.ids import ExecutionId
from foliot.core.serving import Lane
from foliot.runtime.metrics import UNSERVED
from foliot.scheduler.keep_limits import KeepLimits
from foliot.scheduler.trades import common_trades
from foliot.scheduler.unserved import LINE_SECONDS, WatchLanes, words
from foliot.store.database import Database
from foliot.store.unserved import UnservedLane, list_unserved
from foliot.testing.clock import ManualClock
from foliot.testing.database import sql
from foliot.testing.rows import (
    NOW,
    fresh_id,
    insert_rows,
    make_executions,
    make_job,
    make_lane,
    make_tenant,
    make_worker,
)

LATER = NOW + timedelta(hours=1)


@pytest.fixture(autouse=True)
def counted() -> Iterator[None]:
    UNSERVED.clear()
    yield
    UNSERVED.clear()


def gauge() -> dict[str, float]:
    return {
        sample.labels["queue"]: sample.value
        for metric in UNSERVED.collect()
        for sample in metric.samples
    }


async def test_rows_that_wait_for_a_worker_that_is_not_there_are_found(database: Database) -> None:
    served = await make_job(database)
    await make_executions(database, served, 2)
    lane = await make_lane(database, "mail", region="eu", requires=["gpu"], handler="other")
    job = await make_job(database, queue="mail", lane_id=lane)
    rows = await make_executions(database, job, 3)
    await make_executions(database, job, 1, status="RUNNING")
    await make_worker(database, queues=["*"])
    (found,) = await list_unserved(database, LATER)
    assert found == UnservedLane(
        Lane("mail", "eu", ("gpu",), "HANDLER", "other"), 3, rows[0].execution_id
    )
    assert await list_unserved(database, rows[0].scheduled_time + timedelta(seconds=9)) == ()
    await insert_rows(database, "queues", [{"name": "mail", "paused_at": NOW}])
    assert await list_unserved(database, LATER) == (), "a paused queue is meant to wait"
    await database.execute(sql("update foliot.queues set paused_at = null"))
    able = {"labels": ["gpu"], "region": "eu", "handlers": ["other"], "queues": ["mail"]}
    other = await make_tenant(database)
    await make_worker(database, **able, tenant_id=other)
    assert len(await list_unserved(database, LATER)) == 1, "it works for somebody else"
    await make_worker(database, **able)
    assert await list_unserved(database, LATER) == ()


def test_every_scheduler_keeps_limits_and_watches_lanes(database: Database) -> None:
    trades = {type(trade) for trade in common_trades(database, ManualClock())}
    assert {KeepLimits, WatchLanes} <= trades


async def test_without_any_worker_nothing_is_served(database: Database) -> None:
    await make_executions(database, await make_job(database), 1)
    await make_worker(database, status="DRAINING")
    assert [each.waiting for each in await list_unserved(database, LATER)] == [1]


async def test_a_lane_is_counted_up_to_a_thousand(database: Database) -> None:
    await make_executions(database, await make_job(database), 1200)
    (found,) = await list_unserved(database, LATER)
    assert found.waiting == 1000
    assert "1000 or more waiting" in words(found)


async def test_each_lane_is_named_once_a_minute_and_counted_until_somebody_comes(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock()
    trade = WatchLanes(database, clock)
    jobs = [
        await make_job(database, queue=queue, lane_id=await make_lane(database, queue, handler="x"))
        for queue in ("default", "mail")
    ]
    for job in jobs:
        await make_executions(database, job, 2)
    await make_worker(database)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            await trade.run_once(LATER)
        assert len(caplog.messages) == 2
        assert caplog.messages[0].startswith(
            "no live worker serves queue default and handler x: 2 waiting; see GET /v1/executions/"
        )
        assert gauge() == {"default": 2, "mail": 2}
        clock.seconds += LINE_SECONDS
        await make_worker(database, queues=["mail"], handlers=["x"])
        await trade.run_once(LATER)
        assert len(caplog.messages) == 3
        assert gauge() == {"default": 2}


@pytest.mark.parametrize(
    ("lane", "told"),
    [
        (
            Lane("q", "eu", ("big", "gpu"), "HTTP", None),
            "queue q, region eu, labels big, gpu and HTTP targets",
        ),
        (Lane("q", None, (), "HANDLER", "h"), "queue q and handler h"),
    ],
)
def test_a_lane_in_words(lane: Lane, told: str) -> None:
    said = words(UnservedLane(lane, 7, ExecutionId(fresh_id())))
    assert said.startswith(f"no live worker serves {told}: 7 waiting; see GET /v1/executions/")
