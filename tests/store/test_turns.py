"""Who wants a job for himself stands in one line with those that share it; they do not pass him."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from foliot.core.ids import JobId
from foliot.core.model import Job
from foliot.store.database import Database
from foliot.store.enqueuing import Request, Wanted, enqueue
from foliot.store.jobs import pause
from foliot.testing.database import sql
from foliot.testing.jobs import EVERY_MINUTE, create_job, fire_due, new_job
from foliot.testing.rows import DEFAULT_TENANT, NOW, make_job

LATER = NOW + timedelta(minutes=1)
HOLD_FLOW = sql("select foliot.lock_flows(array['default'], array[$1::uuid])")
WAITING = sql(
    "select count(*) from pg_stat_activity"
    " where datname = current_database() and wait_event_type = 'Lock'"
)
RANKED = sql(
    "select trigger, job_version from foliot.executions where rank is not null order by rank"
)
TURNS = sql(
    "select count(*) from pg_locks l join pg_database d on d.oid = l.database"
    " where d.datname = current_database() and l.locktype = 'advisory' and l.classid = 24"
)
Taking = Callable[[Database, Job], Awaitable[None]]


async def until_waiting(database: Database, number: int) -> None:
    while await database.fetch_value(WAITING) < number:
        pass


def ask(database: Database, key: str, *job_ids: JobId) -> asyncio.Task[Any]:
    request = Request(DEFAULT_TENANT, "enqueue", key, NOW)
    wanted = [Wanted(job_id) for job_id in job_ids]
    return asyncio.ensure_future(enqueue(database, request, wanted, LATER))


async def pause_it(database: Database, job: Job) -> None:
    await pause(database, job.tenant_id, job.job_id, changed_by="bob", now=NOW)


async def take_it(database: Database, _: Job) -> None:
    await fire_due(database, LATER, take=True)


@pytest.mark.direct
@pytest.mark.parametrize(
    ("taking", "expected"),
    [
        (pause_it, [("ENQUEUE", 1), ("ENQUEUE", 2)]),
        (take_it, [("ENQUEUE", 1), ("SCHEDULE", 1), ("ENQUEUE", 1)]),
    ],
)
async def test_what_is_enqueued_without_a_pause_keeps_nobody_from_the_job(
    database: Database, database_url: str, taking: Taking, expected: list[tuple[str, int]]
) -> None:
    """The first waits for its flow and has the job meanwhile; then comes who wants it alone, and
    then the second."""
    job = new_job(EVERY_MINUTE)
    await create_job(database, job)
    async with Database(database_url) as other, other.transaction() as session:
        await session.fetch(HOLD_FLOW, DEFAULT_TENANT)
        waiting = [ask(database, "first", job.job_id)]
        await until_waiting(other, 1)
        waiting.append(asyncio.ensure_future(taking(database, job)))
        await until_waiting(other, 2)
        waiting.append(ask(database, "second", job.job_id))
        await until_waiting(other, 3)
    await asyncio.gather(*waiting)
    assert [tuple(row) for row in await database.fetch(RANKED)] == expected


@pytest.mark.direct
@pytest.mark.parametrize(("jobs", "turns"), [(32, 32), (33, 0)])
async def test_a_request_for_many_jobs_does_not_fill_the_servers_table_of_locks(
    database: Database, database_url: str, jobs: int, turns: int
) -> None:
    made = [await make_job(database) for _ in range(jobs)]
    async with Database(database_url) as other, other.transaction() as session:
        await session.fetch(HOLD_FLOW, DEFAULT_TENANT)
        waiting = ask(database, "many", *(job.job_id for job in made))
        await until_waiting(other, 1)
        assert await session.fetch_value(TURNS) == turns
    assert len(await waiting) == jobs
