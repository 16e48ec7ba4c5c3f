"""A changed concurrency limit of a job counts under the keys that its executions wait for."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from foliot.core.ids import ExecutionId
from foliot.core.limits import key_limit, key_text
from foliot.core.model import ConcurrencyLimit, Job, RateLimit, Schedule, ScheduleType
from foliot.scheduler.keep_limits import KeepLimits
from foliot.store.admitting import admit_held
from foliot.store.claiming import ClaimRequest, claim
from foliot.store.database import Database
from foliot.store.enqueuing import Request, Wanted, enqueue
from foliot.store.forgetting import forget_limits
from foliot.store.jobs import delete, update
from foliot.store.limit_changes import SETTLED_SECONDS
from foliot.testing.database import sql
from foliot.testing.jobs import create_job, new_job
from foliot.testing.rows import DEFAULT_TENANT, NOW, make_worker
from foliot.transport.port import Matter

LATER = NOW + timedelta(seconds=SETTLED_SECONDS)
TEMPLATE = "${payload.user}"
LIMITS = sql("select key, max_running from foliot.limits where starts_with(key, 'key:')")
ROWS = sql(
    "select status, hold, limit_keys, rank is not null as ranked"
    " from foliot.executions where job_id = $1 order by scheduled_time, id"
)
CHANGES = sql("select count(*) from foliot.limit_changes")
LOCK = sql("select from foliot.executions where id = $1 for no key update")
FREE = ("QUEUED", None, None, True)


def key(user: str) -> str:
    return key_text(key_limit(DEFAULT_TENANT, user, 1).key)


async def make(database: Database, concurrency: ConcurrencyLimit) -> Job:
    job = new_job(Schedule(ScheduleType.MANUAL), concurrency=concurrency)
    await create_job(database, job)
    return job


async def ask(
    database: Database, job: Job, users: Iterable[str | None], run_at: datetime | None = None
) -> list[ExecutionId]:
    """One for each; without a user, under the key that the job itself has."""
    most = job.concurrency.limit or 1
    wanted = [
        Wanted(
            job.job_id,
            concurrency=None if user is None else key_limit(DEFAULT_TENANT, user, most),
            run_at=run_at,
        )
        for user in users
    ]
    mark = str(await database.fetch_value(sql("select gen_random_uuid()::text")))
    made = await enqueue(database, Request(DEFAULT_TENANT, "enqueue", mark, NOW), wanted, NOW)
    return [each.execution_id for each in made]


async def edit(database: Database, job: Job, limit: int | None, key: str | None = TEMPLATE) -> Job:
    edited = replace(job, concurrency=ConcurrencyLimit(limit=limit, key=key))
    await update(database, edited, changed_by="bob", now=NOW)
    return edited


async def admitted(database: Database) -> int:
    return len((await admit_held(database, now=NOW)).admitted)


async def limits(database: Database) -> dict[str, int]:
    return {each["key"]: each["max_running"] for each in await database.fetch(LIMITS)}


async def rows(database: Database, job: Job) -> list[tuple[Any, ...]]:
    return [tuple(each) for each in await database.fetch(ROWS, job.job_id)]


async def test_a_raised_limit_counts_for_what_waits_under_a_key(database: Database) -> None:
    job = await make(database, ConcurrencyLimit(limit=1, key=TEMPLATE))
    await ask(database, job, ["ann"] * 20 + ["bea"])
    assert await admitted(database) == 2
    await edit(database, job, 10)
    assert (await KeepLimits(database).run_once(NOW)).rows == 2
    assert await limits(database) == {key("ann"): 10, key("bea"): 10}
    assert await admitted(database) == 9


async def test_a_lowered_limit_stops_nothing_and_lets_no_more_go(database: Database) -> None:
    job = await make(database, ConcurrencyLimit(limit=3, key=TEMPLATE))
    await ask(database, job, ["ann"] * 5)
    assert await admitted(database) == 3
    await edit(database, job, 1)
    await KeepLimits(database).run_once(NOW)
    assert await limits(database) == {key("ann"): 1}
    assert await admitted(database) == 0
    assert sum(ranked for *_, ranked in await rows(database, job)) == 3


async def test_a_key_that_came_with_a_request_has_the_limit_of_its_job(database: Database) -> None:
    job = await make(database, ConcurrencyLimit(limit=2))
    await ask(database, job, ["ann"] * 5)
    await edit(database, job, 4, key=None)
    await KeepLimits(database).run_once(NOW)
    assert await limits(database) == {key("ann"): 4}
    assert await admitted(database) == 4


@pytest.mark.parametrize("template", [TEMPLATE, "gate"])
async def test_without_a_limit_what_waits_under_a_key_is_let_go(
    database: Database, template: str
) -> None:
    job = await make(database, ConcurrencyLimit(limit=1, key=template))
    await ask(database, job, [None if template == "gate" else "ann"] * 20)
    assert await admitted(database) == 1
    await edit(database, job, None, key=None)
    assert (await KeepLimits(database, batch=5).run_once(NOW)).rows == 19
    kept = [row for row in await rows(database, job) if row != FREE]
    assert kept == [("QUEUED", None, [key("ann" if template == TEMPLATE else "gate")], True)]
    worker = await make_worker(database)
    wanted = ClaimRequest(worker, "default", [1], 20)
    assert len(await claim(database, wanted)) == 20


async def test_the_oldest_is_let_go_first(database: Database) -> None:
    job = await make(database, ConcurrencyLimit(limit=1, key="gate"))
    made = []
    for second in (3, 1, 2):
        made += await ask(database, job, [None], NOW - timedelta(seconds=second))
    await edit(database, job, None, key=None)
    await KeepLimits(database, batch=2).run_once(NOW)
    ranked = await database.fetch(sql("select id from foliot.executions order by rank"))
    assert [each["id"] for each in ranked] == [made[0], made[2], made[1]]


async def test_what_is_parked_gives_its_key_up_and_waits_for_its_time(database: Database) -> None:
    job = await make(database, ConcurrencyLimit(limit=1, key=TEMPLATE))
    await ask(database, job, ["ann"], NOW + timedelta(seconds=60))
    await edit(database, job, None)
    await KeepLimits(database).run_once(NOW)
    assert await rows(database, job) == [("PENDING", None, None, False)]


async def test_what_runs_keeps_what_it_is_counted_under(database: Database) -> None:
    job = await make(database, ConcurrencyLimit(limit=1, key=TEMPLATE))
    await ask(database, job, ["ann"])
    await admit_held(database, now=NOW)
    worker = await make_worker(database)
    assert len(await claim(database, ClaimRequest(worker, "default", [1], 1))) == 1
    await edit(database, job, None)
    assert (await KeepLimits(database).run_once(NOW)).rows == 0
    assert await rows(database, job) == [("RUNNING", None, [key("ann")], True)]


async def test_other_limits_of_the_same_execution_are_waited_for(database: Database) -> None:
    job = new_job(
        Schedule(ScheduleType.MANUAL),
        concurrency=ConcurrencyLimit(limit=1, key=TEMPLATE),
        rate_limit=RateLimit(2, 60),
    )
    await create_job(database, job)
    await ask(database, job, ["ann"] * 3)
    await edit(database, job, None)
    await KeepLimits(database).run_once(NOW)
    assert await rows(database, job) == [("WAITING", "LIMIT", [f"job:{job.job_id}"], False)] * 3
    assert await admitted(database) == 2


async def test_another_job_with_the_same_key_keeps_its_limit(database: Database) -> None:
    """The key is forgotten once nobody names it."""
    job = await make(database, ConcurrencyLimit(limit=1, key=TEMPLATE))
    other = await make(database, ConcurrencyLimit(limit=1, key=TEMPLATE))
    await ask(database, job, ["ann"] * 2)
    await ask(database, other, ["ann"] * 2)
    await edit(database, job, None)
    await KeepLimits(database).run_once(NOW)
    assert await rows(database, job) == [FREE] * 2
    assert await rows(database, other) == [("WAITING", "LIMIT", [key("ann")], False)] * 2
    assert (await forget_limits(database)).removed == 0
    assert await admitted(database) == 1
    await edit(database, other, None)
    await delete(database, DEFAULT_TENANT, other.job_id, changed_by="bob", now=NOW)
    assert (await forget_limits(database)).removed == 1


async def test_of_two_limits_for_one_key_the_one_told_last_counts(database: Database) -> None:
    job = await make(database, ConcurrencyLimit(limit=1, key=TEMPLATE))
    other = await make(database, ConcurrencyLimit(limit=2, key=TEMPLATE))
    await ask(database, job, ["ann"])
    await ask(database, other, ["ann"])
    assert await limits(database) == {key("ann"): 2}
    job = await edit(database, job, 5)
    await KeepLimits(database).run_once(NOW)
    assert await limits(database) == {key("ann"): 5}
    await ask(database, other, ["ann"])
    assert await limits(database) == {key("ann"): 2}


async def test_a_new_key_counts_for_new_executions_only(database: Database) -> None:
    job = await make(database, ConcurrencyLimit(limit=1, key=TEMPLATE))
    await ask(database, job, ["ann"] * 2)
    await edit(database, job, 1, key="${payload.account}")
    assert await database.fetch_value(CHANGES) == 0
    assert await rows(database, job) == [("WAITING", "LIMIT", [key("ann")], False)] * 2


async def test_the_limit_as_it_is_now_counts(database: Database) -> None:
    """Whatever it was when the change was noted."""
    job = await make(database, ConcurrencyLimit(limit=1, key=TEMPLATE))
    await ask(database, job, ["ann"] * 3)
    await edit(database, job, None)
    await edit(database, job, 2)
    await KeepLimits(database).run_once(NOW)
    assert await limits(database) == {key("ann"): 2}
    assert await admitted(database) == 2


async def test_a_second_walk_corrects_who_did_not_know_yet(database: Database) -> None:
    job = await make(database, ConcurrencyLimit(limit=1, key=TEMPLATE))
    await ask(database, job, ["ann"])
    raised = await edit(database, job, 3)
    trade = KeepLimits(database)
    await trade.run_once(NOW)
    await ask(database, job, ["ann"])  # by somebody who has read the job before the edit
    assert await limits(database) == {key("ann"): 1}
    await trade.run_once(LATER)
    assert await limits(database) == {key("ann"): 3}
    await edit(database, raised, None)
    await trade.run_once(NOW)
    await ask(database, job, ["ann"])
    await trade.run_once(LATER)
    assert await rows(database, job) == [FREE] * 3
    assert await database.fetch_value(CHANGES) == 0


@pytest.mark.parametrize("batch", [1, 1000])
async def test_a_row_in_use_is_walked_for_until_it_is_free(
    database: Database, database_url: str, batch: int
) -> None:
    job = await make(database, ConcurrencyLimit(limit=1, key=TEMPLATE))
    made = await ask(database, job, ["ann"] * 3)
    await edit(database, job, None)
    trade = KeepLimits(database, batch=batch)
    async with Database(database_url) as other, other.transaction() as session:
        await session.execute(LOCK, max(made))
        for moment in (NOW, LATER, LATER + timedelta(seconds=1)):
            await trade.run_once(moment)
            assert sum(row != FREE for row in await rows(database, job)) == 1
        assert await database.fetch_value(CHANGES) == 1
    await trade.run_once(LATER + timedelta(seconds=2))
    assert await rows(database, job) == [FREE] * 3
    assert await database.fetch_value(CHANGES) == 0


async def test_keys_are_changed_by_pages(database: Database) -> None:
    job = await make(database, ConcurrencyLimit(limit=1, key=TEMPLATE))
    users = [f"user-{number}" for number in range(7)]
    await ask(database, job, users * 2)
    await edit(database, job, 2)
    assert (await KeepLimits(database, batch=3).run_once(NOW)).rows == 7
    assert await limits(database) == {key(user): 2 for user in users}


async def test_nothing_is_done_for_a_job_that_is_gone(database: Database) -> None:
    job = await make(database, ConcurrencyLimit(limit=1, key=TEMPLATE))
    await ask(database, job, ["ann"])
    await edit(database, job, 2)
    await delete(database, DEFAULT_TENANT, job.job_id, changed_by="bob", now=NOW)
    trade = KeepLimits(database)
    assert (await trade.run_once(NOW)).rows == 0
    await trade.run_once(LATER)
    assert await database.fetch_value(CHANGES) == 0


async def test_workers_are_told_of_what_is_let_go(database: Database) -> None:
    class Heard:
        def __init__(self) -> None:
            self.told: list[tuple[Matter, list[str]]] = []

        def publish(self, matter: Matter, names: Iterable[str] = ()) -> None:
            self.told.append((matter, sorted(names)))

    job = await make(database, ConcurrencyLimit(limit=1, key=TEMPLATE))
    await ask(database, job, ["ann"] * 2)
    await edit(database, job, None)
    hints = Heard()
    await KeepLimits(database, hints=hints).run_once(NOW)
    assert hints.told == [(Matter.WORK, ["default"])]


async def test_four_schedulers_at_once_and_admissions_beside_them(
    database: Database, database_url: str
) -> None:
    job = await make(database, ConcurrencyLimit(limit=1, key=TEMPLATE))
    await ask(database, job, [f"user-{number % 30}" for number in range(300)])
    await edit(database, job, None)
    async with Database(database_url) as nodes:
        trades = [KeepLimits(nodes, batch=20) for _ in range(4)]
        await asyncio.gather(
            *(trade.run_once(NOW) for trade in trades),
            *(admit_held(nodes, now=NOW) for _ in range(4)),
            *(enqueue_more(nodes, job, number) for number in range(4)),
        )
        await asyncio.gather(*(trade.run_once(LATER) for trade in trades))
        await trades[0].run_once(LATER + timedelta(seconds=1))
    assert await database.fetch_value(CHANGES) == 0
    found = await rows(database, job)
    assert len(found) == 320
    assert all(ranked or keys is not None for _, _, keys, ranked in found), "none is lost"
    assert all(ranked for *_, ranked in found), "nothing waits any more"


async def enqueue_more(database: Database, job: Job, number: int) -> None:
    await ask(database, job, [f"user-{number}"] * 5)
