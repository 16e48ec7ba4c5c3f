"""Ends are told to the jobs that follow: every one that counts, in the transaction of the end, and
each causes one fire."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from foliot.core.ids import JobId, after_execution
from foliot.core.model import After, AfterMode, AfterOn, OverlapPolicy
from foliot.core.states import ExecutionEvent as Event
from foliot.store.cancelling import cancel
from foliot.store.completions import FollowReport, follow, read_news
from foliot.store.connecting import ConnectionOptions
from foliot.store.database import Database
from foliot.store.expiring import expire
from foliot.store.finishing import Outcome, finish
from foliot.store.jobs import delete, pause, resume
from foliot.store.rescuing import rescue_lost
from foliot.testing.database import sql
from foliot.testing.following import (
    end_one,
    live_of,
    make_child,
    make_parent,
    skips_of,
)
from foliot.testing.rows import DEFAULT_TENANT, NOW, make_execution, make_worker
from foliot.testing.running import make_running, until_blocked

SECOND = timedelta(seconds=1)
COMPLETIONS = sql("select child_id, execution_id, status from foliot.completions order by number")
LOCK_JOB = sql("select from foliot.jobs where id = $1 for no key update")
WAITED_FOR = sql(
    "select execution_id from foliot.job_parents where child_id = $1 and execution_id is not null"
)


async def completions(database: Database) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in await database.fetch(COMPLETIONS)]


@pytest.mark.parametrize(
    ("event", "on", "told"),
    [
        (Event.SUCCEED, AfterOn.SUCCEEDED, "SUCCEEDED"),
        (Event.SUCCEED, AfterOn.FINISHED, "SUCCEEDED"),
        (Event.FAIL, AfterOn.SUCCEEDED, None),
        (Event.FAIL, AfterOn.FINISHED, "FAILED"),
        (Event.TIME_OUT, AfterOn.FINISHED, "TIMED_OUT"),
        (Event.CANCEL, AfterOn.SUCCEEDED, None),
        (Event.CANCEL, AfterOn.FINISHED, "CANCELLED"),
        (Event.RETRY, AfterOn.FINISHED, None),
        (Event.SNOOZE, AfterOn.FINISHED, None),
        (Event.HAND_BACK, AfterOn.FINISHED, None),
    ],
)
async def test_an_end_that_counts_is_told_by_the_end_itself(
    database: Database, event: Event, on: AfterOn, told: str | None
) -> None:
    parent, stranger = await make_parent(database), await make_parent(database)
    child = await make_child(database, After((parent.job_id,), on=on))
    await end_one(database, stranger, event)
    ended = await end_one(database, parent, event)
    assert await completions(database) == ([(child.job_id, ended, told)] if told else [])


async def test_ends_that_no_worker_brings_about_are_told(database: Database) -> None:
    """Cancelled while it waited, expired, given up with its worker."""
    parent = await make_parent(database)
    child = await make_child(database, After((parent.job_id,), on=AfterOn.FINISHED))
    waiting, late = [
        await make_execution(database, parent, **changes)
        for changes in ({"status": "PENDING"}, {"start_by": NOW})
    ]
    dead = await make_worker(database, status="DEAD")
    _, (lost,) = await make_running(
        database, 1, job=parent, worker_id=dead, attempt_number=4, run_alone=True, crash_count=9
    )
    await database.execute(sql("update foliot.workers set started = $1"), [lost.execution_id])
    async with database.transaction(DEFAULT_TENANT) as session:
        await cancel(session, DEFAULT_TENANT, [waiting.execution_id], "enough", NOW)
    await expire(database, now=NOW)
    await rescue_lost(database, now=NOW)
    assert await completions(database) == [
        (child.job_id, waiting.execution_id, "CANCELLED"),
        (child.job_id, late.execution_id, "FAILED"),
        (child.job_id, lost.execution_id, "FAILED"),
    ]


async def test_what_runs_when_the_child_is_made_counts_when_it_ends(database: Database) -> None:
    parent = await make_parent(database)
    worker, (before, during) = await make_running(database, 2, job=parent, notify=False)
    await finish(database, worker, [Outcome(before.execution_id, 3, Event.SUCCEED)], NOW)
    child = await make_child(database, After((parent.job_id,)))
    await finish(database, worker, [Outcome(during.execution_id, 3, Event.SUCCEED)], NOW)
    assert await completions(database) == [(child.job_id, during.execution_id, "SUCCEEDED")]


async def test_a_child_fires_with_the_ends_of_its_parents(database: Database) -> None:
    first, second = await make_parent(database), await make_parent(database)
    child = await make_child(
        database, After((first.job_id, second.job_id)), start_deadline_seconds=60, priority=3
    )
    one = await end_one(database, first, at=NOW)
    assert await follow(database, now=NOW + SECOND) == FollowReport(told=1)
    assert await live_of(database, child.job_id) == []
    two = await end_one(database, second, at=NOW + 2 * SECOND)
    now = NOW + 3 * SECOND
    assert await follow(database, now=now) == FollowReport(told=1, fired=(child.job_id,))
    (live,) = await live_of(database, child.job_id)
    assert live["id"] == after_execution(child.job_id, [one, two], NOW + 2 * SECOND)
    assert (live["trigger"], live["status"], live["rank"]) == ("AFTER", "PENDING", None)
    assert (live["scheduled_time"], live["available_at"]) == (NOW + 2 * SECOND, now)
    assert (live["start_by"], live["priority"]) == (now + 60 * SECOND, 3)
    row = await database.fetch_row(
        sql("select fired_count, last_instant from foliot.jobs where id = $1"), child.job_id
    )
    assert row is not None
    assert tuple(row) == (1, NOW + 2 * SECOND)
    assert await completions(database) == []


async def test_all_waits_for_every_parent_anew_after_a_fire(database: Database) -> None:
    first, second = await make_parent(database), await make_parent(database)
    child = await make_child(database, After((first.job_id, second.job_id)))
    for _ in range(3):
        await end_one(database, first)
    await end_one(database, second)
    assert (await follow(database, now=NOW)).fired == (child.job_id,)
    await end_one(database, second)
    assert (await follow(database, now=NOW)).fired == ()
    await end_one(database, first)
    assert (await follow(database, now=NOW)).fired == (child.job_id,)


async def test_of_a_parent_the_newest_end_is_the_cause(database: Database) -> None:
    first, second = await make_parent(database), await make_parent(database)
    child = await make_child(database, After((first.job_id, second.job_id)))
    for number in range(5):
        newest = await end_one(database, first, at=NOW + number * SECOND)
        await follow(database, now=NOW)
    other = await end_one(database, second, at=NOW)
    await follow(database, now=NOW)
    (live,) = await live_of(database, child.job_id)
    assert live["id"] == after_execution(child.job_id, [newest, other], NOW + 4 * SECOND)


async def test_any_fires_for_each_parent(database: Database) -> None:
    first, second = await make_parent(database), await make_parent(database)
    after = After((first.job_id, second.job_id), AfterMode.ANY)
    child = await make_child(database, after)
    for number, parent in enumerate((first, second, first)):
        await end_one(database, parent, at=NOW + number * SECOND)
        assert (await follow(database, now=NOW)).fired == (child.job_id,)
    assert len(await live_of(database, child.job_id)) == 3


async def test_a_chain_passes_on(database: Database) -> None:
    parent = await make_parent(database)
    middle = await make_child(database, After((parent.job_id,)))
    last = await make_child(database, After((middle.job_id,), on=AfterOn.FINISHED))
    await end_one(database, parent)
    await follow(database, now=NOW)
    (live,) = await live_of(database, middle.job_id)
    await cancel(database, DEFAULT_TENANT, [live["id"]], "enough", NOW)
    assert (await follow(database, now=NOW)).fired == (last.job_id,)


@pytest.mark.parametrize(
    ("policy", "running", "waiting", "outcome"),
    [
        (OverlapPolicy.ALLOW, 1, 0, "PENDING"),
        (OverlapPolicy.SKIP, 0, 0, "PENDING"),
        (OverlapPolicy.SKIP, 1, 0, None),
        (OverlapPolicy.QUEUE_ONE, 1, 0, "WAITING"),
        (OverlapPolicy.QUEUE_ONE, 1, 1, None),
        (OverlapPolicy.QUEUE_ALL, 1, 1, "WAITING"),
        (OverlapPolicy.CANCEL_PREVIOUS, 1, 1, "WAITING"),
    ],
)
async def test_the_overlap_policy_is_that_of_scheduled_fires(
    database: Database, policy: OverlapPolicy, running: int, waiting: int, outcome: str | None
) -> None:
    parent = await make_parent(database)
    child = await make_child(database, After((parent.job_id,)), overlap_policy=policy)
    row = await make_parent(database)
    for state in ["RUNNING"] * running + ["WAITING"] * waiting:
        await make_execution(database, row, status=state, trigger="AFTER", job_id=child.job_id)
    await end_one(database, parent)
    report = await follow(database, now=NOW)
    made = [one for one in await live_of(database, child.job_id) if one["created_at"] == NOW]
    assert [one["status"] for one in made] == ([outcome] if outcome else [])
    assert (report.fired, report.skipped) == (
        ((child.job_id,), ()) if outcome else ((), (child.job_id,))
    )
    assert await skips_of(database, child.job_id) == ([] if outcome else [(NOW, "OVERLAP")])
    if policy is OverlapPolicy.CANCEL_PREVIOUS:
        old = [one for one in await live_of(database, child.job_id) if one["created_at"] != NOW]
        assert [one["cancel_requested_at"] for one in old] == [NOW]
    assert (await follow(database, now=NOW)).told == 0, "a skip has used its causes"


async def test_four_schedulers_at_once_fire_each_child_once(
    database: Database, database_url: str
) -> None:
    parents = [await make_parent(database) for _ in range(4)]
    children = [
        await make_child(database, After((parent.job_id,), AfterMode.ANY))
        for parent in parents
        for _ in range(6)
    ]
    async with Database(database_url, ConnectionOptions(max_connections=8)) as nodes:
        fired = 0
        for number in range(5):
            at = NOW + number * SECOND
            async with asyncio.TaskGroup() as group:
                for parent in parents:
                    group.create_task(end_one(nodes, parent, at=at))
                early = [group.create_task(follow(nodes, rows=7, now=at)) for _ in range(4)]
            fired += sum(len(one.result().fired) for one in early)
            while await completions(database):
                passes = (follow(nodes, rows=7, now=at) for _ in range(4))
                fired += sum(len(one.fired) for one in await asyncio.gather(*passes))
    assert fired == 5 * len(children)
    for child in children:
        live = await live_of(database, child.job_id)
        assert [one["scheduled_time"] for one in live] == [NOW + n * SECOND for n in range(5)]


async def test_a_child_in_other_hands_is_passed_over_and_met_again(database: Database) -> None:
    parent = await make_parent(database)
    held, free = [await make_child(database, After((parent.job_id,))) for _ in range(2)]
    await end_one(database, parent)
    async with database.transaction() as other:
        await other.execute(LOCK_JOB, held.job_id)
        assert (await follow(database, now=NOW)).fired == (free.job_id,)
    assert (await follow(database, now=NOW)).fired == (held.job_id,)


async def test_a_pass_that_breaks_off_has_done_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = await make_parent(database)
    child = await make_child(database, After((parent.job_id,)))
    await end_one(database, parent)

    def broken(*_: object) -> None:
        raise RuntimeError("the node dies here")

    with monkeypatch.context() as patch:
        patch.setattr("foliot.store.completions.decide", broken)
        with pytest.raises(RuntimeError, match="dies here"):
            await follow(database, now=NOW)
    assert (await follow(database, now=NOW)).fired == (child.job_id,)


async def test_a_backlog_of_ends_is_one_fire_however_it_is_paged(database: Database) -> None:
    """An end below one that has been told is not told again, whichever page it comes with."""
    parent = await make_parent(database)
    child = await make_child(database, After((parent.job_id,), AfterMode.ANY))
    for number in range(7):
        await end_one(database, parent, at=NOW - number * SECOND)
    reports = [await follow(database, rows=3, now=NOW) for _ in range(3)]
    assert [report.full for report in reports] == [True, True, False]
    assert [report.fired for report in reports] == [(child.job_id,), (), ()]
    assert await completions(database) == []


async def test_a_schedule_from_a_newer_version_holds_up_nobody(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    """What its job is told is kept: it fires once the schedule can be read."""
    parent = await make_parent(database)
    strange, child = [await make_child(database, After((parent.job_id,))) for _ in range(2)]
    rename = sql(
        "update foliot.job_versions set definition ="
        " jsonb_set(definition, '{schedule,after,mode}', $2) where job_id = $1"
    )
    await database.execute(rename, strange.job_id, "SOME")
    await end_one(database, parent)
    assert (await follow(database, now=NOW)).fired == (child.job_id,)
    assert f"job {strange.job_id} follows others in a way that is not known here" in caplog.text
    await database.execute(rename, strange.job_id, "ALL")
    await resume_after_pause(database, strange.job_id)
    assert len(await live_of(database, strange.job_id)) == 1


async def resume_after_pause(database: Database, job_id: JobId) -> None:
    for change in (pause, resume):
        await change(database, DEFAULT_TENANT, job_id, changed_by="bob", now=NOW)


async def test_a_look_tells_whether_there_is_news(database: Database) -> None:
    parent = await make_parent(database)
    await make_child(database, After((parent.job_id,)))
    news = await read_news(database, now=NOW)
    assert (news.waiting, news.low) == (False, NOW - 10 * SECOND)
    await end_one(database, parent, at=NOW - 11 * SECOND)
    assert not (await read_news(database, news.low, now=NOW)).waiting
    assert (await read_news(database, now=NOW)).waiting


async def test_ends_for_a_child_that_is_gone_are_forgotten(database: Database) -> None:
    """An end that looked for children before the deletion, and tells them after it."""
    parent = await make_parent(database)
    child = await make_child(database, After((parent.job_id,)))
    await end_one(database, parent)
    waited = await make_child(database, After((parent.job_id,)))
    await delete(database, DEFAULT_TENANT, child.job_id, changed_by="bob", now=NOW)
    assert await completions(database) != []
    assert (await follow(database, now=NOW)).fired == ()
    assert await completions(database) == []
    await end_one(database, parent)
    assert (await follow(database, now=NOW)).fired == (waited.job_id,)


async def test_an_end_waits_for_no_child_and_no_child_for_an_end(database: Database) -> None:
    """A pass in the middle of its work keeps nobody from finishing."""
    parent = await make_parent(database)
    child = await make_child(database, After((parent.job_id,)))
    async with database.transaction() as other:
        await other.execute(LOCK_JOB, child.job_id)
        await other.execute(sql("update foliot.job_parents set last_number = 0"))
        await end_one(database, parent)
    assert len(await completions(database)) == 1
    assert await database.fetch(WAITED_FOR, child.job_id) == []


async def test_a_deletion_waits_for_the_pass_that_fires(database: Database) -> None:
    parent = await make_parent(database)
    child = await make_child(database, After((parent.job_id,)))
    await end_one(database, parent)
    async with database.transaction() as other:
        await other.execute(LOCK_JOB, child.job_id)
        deletion = asyncio.create_task(
            delete(database, DEFAULT_TENANT, child.job_id, changed_by="bob", now=NOW)
        )
        await until_blocked(other)
    assert await deletion == 1, "what was due fired, and was cancelled with the rest"
