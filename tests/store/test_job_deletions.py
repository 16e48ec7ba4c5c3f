"""A deletion that died half-way is finished by anyone."""

from datetime import timedelta
from typing import Any

from foliot.core.ids import JobId
from foliot.store.database import Database
from foliot.store.errors import DatabaseUnreachable
from foliot.store.job_deletions import DeletionReport, finish_deletions
from foliot.store.jobs import CANCELLED_AT_ONCE, delete
from foliot.store.statements import Statement
from foliot.testing.database import sql
from foliot.testing.rows import DEFAULT_TENANT, NOW, make_executions, make_job
from foliot.testing.running import make_running

LEFT = sql("select job_id, status, count(*) from foliot.executions group by 1, 2 order by 3")
OVER = sql("select status, error ->> 'message', finished_at, count(*) from foliot.attempts"
           " group by 1, 2, 3")  # fmt: skip
LATER = NOW + timedelta(hours=1)


class Dying(Database):
    """Gone after the transaction in which the job was deleted."""

    async def fetch_value(self, statement: Statement, *_: object) -> Any:  # noqa: ANN401
        raise DatabaseUnreachable(self.url, f"killed before {statement.name}")


async def test_what_still_waits_of_a_deleted_job_is_cancelled(
    database: Database, database_url: str
) -> None:
    job = await make_job(database, next_instant=NOW + timedelta(days=1))
    await make_executions(database, job, CANCELLED_AT_ONCE + 30)
    async with Dying(database_url) as dying:
        # It is deleted: whoever asked is told so, and does not ask again.
        done = await delete(dying, DEFAULT_TENANT, job.job_id, changed_by="alice", now=NOW)
    assert done == CANCELLED_AT_ONCE
    assert [row["count"] for row in await database.fetch(LEFT)] == [30]
    assert await finish_deletions(database, now=LATER) == DeletionReport(30, job.job_id)
    assert await finish_deletions(database, job.job_id, now=LATER) == DeletionReport(0, None)
    assert await database.fetch(LEFT) == []
    assert sorted(map(tuple, await database.fetch(OVER))) == [
        ("CANCELLED", "its job was deleted", NOW, CANCELLED_AT_ONCE),
        ("CANCELLED", "its job was deleted", LATER, 30),
    ]


async def test_what_runs_may_finish_and_what_is_not_deleted_stays(database: Database) -> None:
    deleted = await make_job(database, status="DELETED")
    await make_running(database, 2, job=deleted)
    others = [await make_job(database, status=each) for each in ("ACTIVE", "PAUSED", "COMPLETED")]
    for job in others:
        await make_executions(database, job, 3)
    assert await finish_deletions(database, now=NOW) == DeletionReport(0, None)
    assert sum(row["count"] for row in await database.fetch(LEFT)) == 11


async def test_a_job_with_more_than_a_batch_is_met_again(database: Database) -> None:
    job = await make_job(database, status="DELETED")
    await make_executions(database, job, 25)
    place: JobId | None = None
    found: list[int] = []
    for _ in range(4):
        report = await finish_deletions(database, place, batch=10, now=NOW)
        place = report.after
        found.append(report.cancelled)
    assert found == [10, 10, 5, 0]
    assert place is None


async def test_one_call_looks_at_so_many_jobs_and_ends_each_alone(database: Database) -> None:
    jobs = sorted(
        [await make_job(database, status="DELETED" if n in (2, 3) else "ACTIVE") for n in range(6)],
        key=lambda job: job.job_id,
    )
    for job in jobs:
        await make_executions(database, job, 2)
    place, cancelled, calls = None, 0, 0
    while calls == 0 or place is not None:
        report = await finish_deletions(database, place, steps=2, now=NOW)
        assert report.cancelled in (0, 2)
        place, cancelled, calls = report.after, cancelled + report.cancelled, calls + 1
    assert cancelled == 4
    assert calls >= 3
