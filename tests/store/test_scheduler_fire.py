"""Staging and firing by hand: on time, every instant once, whatever changes inside the window."""

import logging
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import pytest

from foliot.core.ids import JobId
from foliot.core.model import Job, MisfirePolicy, OverlapPolicy, Schedule, ScheduleType
from foliot.runtime.metrics import FIRE_ERRORS, INSTANTS_SKIPPED, JOBS_TRIGGERED, TRIGGER_DELAY
from foliot.scheduler import stage
from foliot.scheduler.fire import FirePass
from foliot.store import jobs as job_store
from foliot.store.database import Database
from foliot.store.errors import CommitUnknown, DatabaseUnreachable
from foliot.store.job_rows import StoredJob, get
from foliot.testing.database import sql
from foliot.testing.jobs import create_job, new_job, outcomes
from foliot.testing.proxy import NodeProxy
from foliot.testing.rows import NOW, JobRow, make_job
from foliot.testing.schedulers import ManualScheduler

EXECUTIONS: Final = sql("select count(*) from foliot.executions")
STATUS: Final = sql("select status from foliot.jobs where id = $1")
DEFINITION: Final = sql(
    "update foliot.job_versions set definition = jsonb_set(definition, '{schedule,warp}', '9')"
    " where job_id = $1"
)


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def every(seconds: float, **changes: object) -> Schedule:
    values: dict[str, object] = {"overlap_policy": OverlapPolicy.ALLOW} | changes
    return Schedule(ScheduleType.INTERVAL, interval_seconds=seconds, **values)  # type: ignore[arg-type] # fields of any type


async def create(database: Database, schedule: Schedule, now: datetime = NOW) -> Job:
    return (await create_job(database, new_job(schedule), now)).job


async def make_once(database: Database, instant: datetime, **changes: object) -> JobRow:
    schedule = Schedule(ScheduleType.ONE_TIME, run_at=instant)
    return await make_job(database, schedule, next_instant=instant, **changes)


async def instants(database: Database, job: Job) -> list[datetime]:
    return [instant for instant, _ in await outcomes(database, job)]


async def ready(database: Database) -> ManualScheduler:
    """A scheduler that holds all shards."""
    node = ManualScheduler(database)
    await node.share(NOW)
    return node


async def test_a_job_is_staged_ahead_and_fired_when_it_is_due(database: Database) -> None:
    job = await create(database, every(3))
    node = await ready(database)
    assert await node.stage(at(0)) == 1
    assert await node.fire(at(2.999999)) == FirePass()
    assert await instants(database, job) == []
    assert await node.fire(at(3)) == FirePass(fired=1)
    assert await instants(database, job) == [at(3)]


async def test_how_late_it_is_fired_is_measured(database: Database) -> None:
    await create(database, every(3))
    node = await ready(database)
    await node.stage(at(0))
    before = TRIGGER_DELAY.of().total
    await node.fire(at(3.5))
    assert TRIGGER_DELAY.of().total - before == pytest.approx(0.5)


async def test_a_job_comes_again_without_another_look(database: Database) -> None:
    job = await create(database, every(0.1))
    node = await ready(database)
    await node.stage(at(0))
    for tenth in range(1, 31):
        assert await node.fire(at(tenth / 10)) == FirePass(fired=1)
    assert await instants(database, job) == [at(tenth / 10) for tenth in range(1, 31)]


async def test_a_job_ends_with_its_last_run_though_nobody_looked(database: Database) -> None:
    job = await create(database, every(0.1, max_runs=3))
    node = await ready(database)
    await node.stage(at(0))
    fired = [(await node.fire(at(tenth / 10))).fired for tenth in range(1, 7)]
    assert fired == [1, 1, 1, 0, 0, 0]
    assert await database.fetch_value(STATUS, job.job_id) == "COMPLETED"


async def test_what_was_due_meanwhile_is_fired_as_one_row_of_the_batch(database: Database) -> None:
    job = await create(database, every(0.1))
    node = await ready(database)
    await node.stage(at(0))
    assert await node.fire(at(1.05)) == FirePass(fired=10)
    assert len(await instants(database, job)) == 10


async def test_each_job_is_read_once_in_its_window(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "PAGE", 10)
    for number in range(100):
        await make_once(database, at(number / 10))
    node = await ready(database)
    news = [(await node.ahead.run_once(at(second))).staged for second in range(6)]
    assert news == [50, 10, 10, 10, 10, 10]
    assert len(node.staged) == 100


async def test_a_herd_of_one_instant_is_staged_whole(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "PAGE", 4)
    monkeypatch.setattr(stage, "HERD", 10)
    for _ in range(150):
        await make_once(database, at(4))
    node = await ready(database)
    assert (await node.ahead.run_once(at(0))).staged == 150
    assert await node.fire(at(4)) == FirePass(fired=150)


async def test_while_a_herd_waits_nobody_reads_it_over_and_over(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "PAGE", 4)
    for _ in range(10):
        await make_once(database, at(4))
    node = await ready(database)
    await node.stage(at(3.9))
    assert node.at_hand.pause_seconds == stage.HERD_PAUSE_SECONDS
    await node.fire(at(4))
    await node.stage(at(4))
    assert node.at_hand.pause_seconds == stage.AT_HAND_PAUSE_SECONDS


async def test_memory_has_an_end(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "STAGED_MAX", 3)
    for number in range(6):
        await make_once(database, at(number))
    node = await ready(database)
    assert (await node.ahead.run_once(at(-2))).staged == 3
    assert (await node.ahead.run_once(at(0))).staged == 0
    await node.fire(at(0))
    assert (await node.ahead.run_once(at(0))).staged == 2


@pytest.mark.parametrize("page", [2, 4])
async def test_memory_has_an_end_within_one_look_too(
    database: Database, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    """After an outage everything is due at once, in the first look at a shard."""
    monkeypatch.setattr(stage, "PAGE", page)
    monkeypatch.setattr(stage, "STAGED_MAX", 6)
    for number in range(20):
        await make_once(database, at(number // 2))
    node = await ready(database)
    await node.ahead.run_once(at(60))
    assert len(node.staged) <= 6 + page
    for _ in range(10):
        await node.fire(at(60))
        await node.ahead.run_once(at(60))
    assert await database.fetch_value(EXECUTIONS) == 20


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule(ScheduleType.IMMEDIATE),
        Schedule(ScheduleType.DELAYED, delay_seconds=0.2),
        Schedule(ScheduleType.ONE_TIME, run_at=at(2.2)),
        Schedule(ScheduleType.ONE_TIME, run_at=at(-3600)),
    ],
    ids=lambda schedule: schedule.type,
)
async def test_a_job_that_comes_inside_the_window_is_on_time(
    database: Database, schedule: Schedule
) -> None:
    node = await ready(database)
    await node.stage(at(0))
    job = await create(database, schedule, at(2))
    assert (await node.at_hand.run_once(at(2.1))).staged == 1
    assert await node.fire(at(2.2)) == FirePass(fired=1)
    assert len(await instants(database, job)) == 1


async def test_a_job_that_is_edited_inside_the_window_fires_as_it_is_then(
    database: Database,
) -> None:
    stored = await create_job(database, new_job(every(3)))
    node = await ready(database)
    await node.stage(at(0))
    await _edit(database, stored, every(0.5), at(1))
    await node.stage(at(1.3))
    assert await node.fire(at(1.5)) == FirePass(fired=1)
    await _edit(database, stored, every(0.7), at(1.6))
    # What was staged under the old version changes nothing.
    assert await node.fire(at(2)) == FirePass(passed_over=1)
    await node.stage(at(2))
    assert await node.fire(at(2.1)) == FirePass(fired=1)
    assert await instants(database, stored.job) == [at(1.5), at(2.1)]


async def _edit(database: Database, stored: StoredJob, schedule: Schedule, now: datetime) -> None:
    edited = replace(stored.job, schedule=schedule)
    await job_store.update(database, edited, changed_by="alice", now=now)


async def test_a_paused_job_needs_no_withdrawal(database: Database) -> None:
    job = await create(database, every(1))
    node = await ready(database)
    await node.stage(at(0))
    await job_store.pause(database, job.tenant_id, job.job_id, changed_by="alice", now=at(0.5))
    assert await node.fire(at(1)) == FirePass(passed_over=1)
    assert await instants(database, job) == []
    assert await node.stage(at(1.1)) == 0


async def test_a_lost_answer_is_fired_again_and_passed_over(database_url: str) -> None:
    async with NodeProxy(database_url) as proxy, Database(proxy.url) as database:
        warm, job = await create(database, every(1)), await create(database, every(2))
        node = await ready(database)
        await node.stage(at(0))
        await node.fire(at(1))
        proxy.cut_at(job.job_id.bytes, deliver=True)
        with pytest.raises((CommitUnknown, DatabaseUnreachable)):
            await node.fire(at(2))
        assert (await node.fire(at(2))).passed_over == 2
        for second in (2.8, 3.8):
            await node.stage(at(second))
            await node.fire(at(second + 0.2))
        assert await instants(database, job) == [at(2), at(4)]
        assert await instants(database, warm) == [at(1), at(2), at(3), at(4)]


async def test_after_an_outage_the_misfire_policy_decides(database: Database) -> None:
    once = await create(database, every(1))
    all_ = await create(database, every(1, misfire_policy=MisfirePolicy.FIRE_ALL))
    node = await ready(database)
    await node.stage(at(0))
    skipped = INSTANTS_SKIPPED._value.get()
    assert await node.fire(at(10)) == FirePass(fired=11, skipped=9)
    assert INSTANTS_SKIPPED._value.get() == skipped + 9
    assert await outcomes(database, once) == [(at(1), "MISFIRE 9"), (at(10), "1")]
    assert len(await instants(database, all_)) == 10


async def test_what_became_due_during_an_outage_is_read_when_it_is_over(
    database: Database,
) -> None:
    node = await ready(database)
    await node.stage(at(0))
    for number in range(20):
        await make_once(database, at(6 + number))
    # The next pass that succeeds.
    assert (await node.ahead.run_once(at(60))).staged == 20
    assert (await node.fire(at(60))).fired == 20


async def test_a_job_that_is_refused_is_told_about_and_left_alone_for_a_while(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    bad = await make_once(database, at(1), start_deadline_seconds=1e300)
    for _ in range(5):
        await make_once(database, at(1))
    errors, triggered = FIRE_ERRORS._value.get(), JOBS_TRIGGERED._value.get()
    node = await ready(database)
    await node.stage(at(0))
    assert await node.fire(at(1)) == FirePass(fired=5, refused=1)
    assert JOBS_TRIGGERED._value.get() == triggered + 5
    for tenth in range(11, 21):
        await node.stage(at(tenth / 10))
        assert await node.fire(at(tenth / 10)) == FirePass()
    assert FIRE_ERRORS._value.get() == errors + 1
    (told,) = [record.message for record in caplog.records if record.levelno >= logging.ERROR]
    assert told.startswith(f"job {bad.job_id} cannot be fired: jobs/fire_due: ")
    await node.stage(at(11.5))
    assert await node.fire(at(11.5)) == FirePass(refused=1)


async def test_a_job_that_cannot_be_read_or_settled_keeps_no_other_waiting(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    strange = await make_once(database, at(1))
    await database.execute(DEFINITION, strange.job_id)
    lost = await make_job(database, every(3600, calendar="gone"), next_instant=at(1))
    await make_once(database, at(1))
    node = await ready(database)
    for second in (0, 1):
        await node.stage(at(second))
    assert await node.fire(at(1)) == FirePass(fired=1)
    told = {record.message.split()[1] for record in caplog.records if record.levelname == "ERROR"}
    assert told == {str(strange.job_id), str(lost.job_id)}


async def test_what_we_no_longer_own_is_forgotten(database: Database) -> None:
    for _ in range(60):
        await make_once(database, at(4))
    one, two = await ready(database), ManualScheduler(database)
    await one.stage(at(0))
    for second in (1, 2):
        for node in (two, one):
            await node.share(at(second))
    await one.stage(at(2))
    await two.share(at(3))
    await two.stage(at(3))
    assert len(one.staged) + len(two.staged) == 60
    assert min(len(one.staged), len(two.staged)) > 10
    assert await one.fire(at(4)) + await two.fire(at(4)) == FirePass(fired=60)


async def test_a_shard_that_comes_back_is_read_from_the_beginning(database: Database) -> None:
    for _ in range(20):
        await make_once(database, at(4))
    node = await ready(database)
    held = node.shards._held
    for owned, news in ((held, 20), ({}, 0), (held, 20)):
        node.shards._held = owned
        assert (await node.ahead.run_once(at(0))).staged == news


async def test_a_frozen_node_that_wakes_up_changes_nothing(database: Database) -> None:
    for _ in range(60):
        await make_once(database, at(4))
    one = await ready(database)
    await one.stage(at(0))
    two = await ready(database)
    two.shards._held = dict.fromkeys(range(64), 1)
    await two.stage(at(0))
    assert (await two.fire(at(4))).fired == 60
    assert await one.fire(at(30)) == FirePass(passed_over=60)
    assert await database.fetch_value(EXECUTIONS) == 60


async def test_by_the_servers_clock_nothing_is_early(database: Database) -> None:
    """Without a told time: what is fired is claimable at once, so its time had come."""
    now = await database.fetch_value(sql("select clock_timestamp()"))
    job = await create(database, every(0.05), now)
    node = ManualScheduler(database)
    await node.shards.run_once()
    await node.time.learn()
    # The clock of this node stands still, so only what was due by then may be fired.
    await node.at_hand.run_once()
    fired = (await node.fires.run_once()).fired
    statuses = await database.fetch(
        sql("select status, available_at, created_at from foliot.executions")
    )
    assert len(statuses) == fired == len(await instants(database, job))
    assert all(row["status"] == "QUEUED" for row in statuses)
    assert all(row["available_at"] <= row["created_at"] for row in statuses)


@pytest.mark.parametrize(
    "policy", [{"misfire_policy": MisfirePolicy.SKIP}, {"misfire_grace_seconds": 1.0}], ids=str
)
async def test_a_job_with_a_long_jitter_runs_when_its_time_comes(
    database: Database, policy: dict[str, object]
) -> None:
    """Its instant is long past by then, and it is not late."""
    drawn = replace(
        new_job(every(3600, jitter_seconds=3000.0, **policy)), job_id=JobId(UUID(int=7))
    )
    job = (await create_job(database, drawn)).job
    stored = await get(database, job.tenant_id, job.job_id)
    assert stored.next_run_at is not None
    assert stored.next_run_at > at(3661)
    node = await ready(database)
    await node.stage(stored.next_run_at)
    assert await node.fire(stored.next_run_at) == FirePass(fired=1)


async def test_however_many_cannot_be_read_what_comes_after_them_is_on_time(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They stand at the head of every look without a bound, some at one instant."""
    monkeypatch.setattr(stage, "PAGE", 3)
    for number in range(8):
        strange = await make_once(database, at(number // 6))
        await database.execute(DEFINITION, strange.job_id)
    node = await ready(database)
    await node.stage(at(10))
    good = await make_once(database, at(10.1))
    assert await node.stage(at(10.2)) == 1
    assert await node.fire(at(10.2)) == FirePass(fired=1)
    assert await database.fetch_value(STATUS, good.job_id) == "COMPLETED"
