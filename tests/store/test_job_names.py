"""A name belongs to one job that is not over, whoever asks for it at the same time."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from foliot.core.errors import JobAlreadyExists
from foliot.core.ids import JobId
from foliot.core.model import Job, Schedule, ScheduleType
from foliot.core.states import JobState
from foliot.store.database import Database
from foliot.store.job_rows import StoredJob, get
from foliot.store.jobs import create, update
from foliot.store.session import Session
from foliot.testing.database import sql
from foliot.testing.jobs import EVERY_MINUTE, create_job, fire_due, new_job
from foliot.testing.rows import DEFAULT_TENANT, NOW, fresh_id

ONCE = Schedule(ScheduleType.ONE_TIME, run_at=NOW + timedelta(seconds=1))
OWNERS = sql("select name, job_id from foliot.job_names order by name")
WAITING = sql("""
with behind as (select distinct l.pid from pg_locks l
                 where not l.granted and pg_backend_pid() = any(pg_blocking_pids(l.pid)))
select count(distinct l.pid) from pg_locks l
 where not l.granted
   and (l.pid in (select pid from behind)
        or pg_blocking_pids(l.pid) && array(select pid from behind))
""")
KEEP_NAME = sql("select from foliot.job_names where name = $1 for update")


async def owners(database: Database) -> dict[str, JobId]:
    return {row["name"]: row["job_id"] for row in await database.fetch(OWNERS)}


async def until_waiting(session: Session, count: int) -> None:
    """Until so many wait for locks in this database, directly or one behind the other."""
    while await session.fetch_value(WAITING) < count:
        pass


async def completed(database: Database, name: str) -> StoredJob:
    """A job whose only instant has fired."""
    stored = await create_job(database, new_job(ONCE, name=name))
    await fire_due(database, NOW + timedelta(seconds=2))
    over = await get(database, DEFAULT_TENANT, stored.job.job_id)
    assert over.job.status is JobState.COMPLETED
    return over


async def test_a_job_that_is_over_keeps_its_name_until_another_wants_it(
    database: Database,
) -> None:
    over = await completed(database, "report")
    assert await owners(database) == {"report": over.job.job_id}
    new = await create_job(database, new_job(name="report"))
    assert await owners(database) == {"report": new.job.job_id}
    again = replace(over.job, schedule=EVERY_MINUTE)
    with pytest.raises(JobAlreadyExists, match="report"):
        await update(database, again, changed_by="bob", now=NOW + timedelta(minutes=1))
    unchanged = await get(database, DEFAULT_TENANT, over.job.job_id)
    assert (unchanged.job.status, unchanged.job.version) == (JobState.COMPLETED, over.job.version)


async def test_a_new_name_leaves_the_old_one_to_others(database: Database) -> None:
    stored = await create_job(database, new_job(name="old"))
    await update(database, replace(stored.job, name="new"), changed_by="bob", now=NOW)
    other = await create_job(database, new_job(name="old"))
    assert await owners(database) == {"old": other.job.job_id, "new": stored.job.job_id}
    with pytest.raises(JobAlreadyExists):
        await update(database, replace(stored.job, name="old"), changed_by="bob", now=NOW)


async def test_of_eight_who_want_a_name_at_once_one_gets_it(database: Database) -> None:
    async def attempt(job: Job) -> Job | None:
        try:
            return (await create(database, job, changed_by="alice", now=NOW)).job
        except JobAlreadyExists:
            return None

    wanted = [new_job(name="report") for _ in range(8)]
    made = [job for job in await asyncio.gather(*map(attempt, wanted)) if job is not None]
    assert len(made) == 1
    assert await owners(database) == {"report": made[0].job_id}
    rows = await database.fetch(sql("select id from foliot.jobs"))
    assert [row["id"] for row in rows] == [made[0].job_id]


async def test_a_job_that_comes_back_while_another_waits_for_its_name_keeps_it(
    database: Database, database_url: str
) -> None:
    """The one that waits must not go by what it saw before it waited."""
    over = await completed(database, "report")
    again = replace(over.job, schedule=EVERY_MINUTE)
    async with Database(database_url) as other:
        async with database.transaction() as holder:
            await holder.execute(KEEP_NAME, "report")
            returning = asyncio.create_task(
                update(other, again, changed_by="bob", now=NOW + timedelta(minutes=1))
            )
            await until_waiting(holder, 1)
            arriving = asyncio.create_task(
                create_job(other, replace(new_job(name="report"), job_id=JobId(fresh_id())))
            )
            await until_waiting(holder, 2)
        back = await returning
        with pytest.raises(JobAlreadyExists):
            await arriving
    assert back.job.status is JobState.ACTIVE
    assert await owners(database) == {"report": over.job.job_id}
