"""Rows whose time has come go to the queue: all of them, each once, and none before its time."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from foliot.store.connecting import ConnectionOptions
from foliot.store.database import Database
from foliot.store.releasing import ReleaseReport, release_due, release_overlaps
from foliot.testing.database import sql
from foliot.testing.rows import (
    NOW,
    JobRow,
    make_execution,
    make_executions,
    make_job,
    make_tenant,
)
from foliot.testing.running import until_blocked

SECOND = timedelta(seconds=1)
LOCK_ROW = sql("select from foliot.executions where id = $1 for no key update")
STATES = sql("select status, hold, rank is not null as ranked from foliot.executions order by id")


async def states(database: Database) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in await database.fetch(STATES)]


@pytest.mark.parametrize(
    ("row", "after"),
    [
        ({"status": "PENDING"}, ("QUEUED", None, True)),
        ({"status": "RETRYING"}, ("QUEUED", None, True)),
        ({"status": "QUEUED", "rank": None}, ("QUEUED", None, True)),
        ({"status": "WAITING", "hold": "BREAKER"}, ("QUEUED", None, True)),
        ({"status": "PENDING", "limit_keys": ["queue:q"]}, ("WAITING", "LIMIT", False)),
        ({"status": "RETRYING", "limit_keys": ["queue:q"]}, ("WAITING", "LIMIT", False)),
        (
            {"status": "WAITING", "hold": "BREAKER", "limit_keys": ["queue:q"]},
            ("WAITING", "LIMIT", False),
        ),
        ({"status": "WAITING", "hold": "OVERLAP"}, ("WAITING", "OVERLAP", False)),
        ({"status": "WAITING", "hold": "EVENT"}, ("WAITING", "EVENT", False)),
        ({"status": "RUNNING"}, ("RUNNING", None, True)),
    ],
)
async def test_a_row_that_is_due_goes_where_it_belongs(
    database: Database, row: dict[str, Any], after: tuple[str, str | None, bool]
) -> None:
    await make_execution(database, await make_job(database), available_at=NOW, **row)
    await release_due(database, now=NOW)
    assert await states(database) == [after]


async def test_nothing_goes_before_its_time(database: Database) -> None:
    job = await make_job(database)
    await make_execution(database, job, status="PENDING", available_at=NOW)
    early = NOW - timedelta(microseconds=1)
    assert (await release_due(database, now=early)).seen == 0
    assert await release_due(database, now=NOW) == ReleaseReport(1, 1, 0, NOW)
    (row,) = await database.fetch(sql("select queued_at from foliot.executions"))
    assert row["queued_at"] == NOW


async def test_a_batch_takes_the_oldest_and_begins_at_its_lower_bound(database: Database) -> None:
    job = await make_job(database)
    for second in range(6):
        await make_execution(
            database, job, status="PENDING", available_at=NOW + second * SECOND, priority=second + 1
        )
    released = sql("select priority from foliot.executions where rank is not null order by 1")
    now = NOW + 10 * SECOND
    await release_due(database, NOW + 2 * SECOND, batch=2, now=now)
    assert [row[0] for row in await database.fetch(released)] == [3, 4]
    await release_due(database, NOW + 2 * SECOND, now=now)
    assert [row[0] for row in await database.fetch(released)] == [3, 4, 5, 6]
    assert await release_due(database, now=now) == ReleaseReport(2, 2, 0, now)


async def test_released_rows_are_ranked_behind_what_their_flow_has_waiting(
    database: Database,
) -> None:
    job = await make_job(database, tenant_id=await make_tenant(database))
    await make_execution(database, job, rank=7.0)
    await make_executions(database, job, 3, status="RETRYING")
    await release_due(database, now=NOW)
    ranks = await database.fetch(sql("select rank from foliot.executions order by rank"))
    assert [row["rank"] for row in ranks] == [7.0, 8.0, 9.0, 10.0]


async def test_four_schedulers_release_everything_once(
    database: Database, database_url: str
) -> None:
    free = [await make_tenant(database) for _ in range(5)]
    for tenant in free:
        job = await make_job(database, tenant_id=tenant)
        await make_executions(database, job, 200, status="PENDING", available_at=NOW)
    released = 0
    async with Database(database_url, ConnectionOptions(max_connections=4)) as nodes:
        while reports := await asyncio.gather(
            *(release_due(nodes, batch=150, now=NOW) for _ in range(4))
        ):
            released += sum(report.released for report in reports)
            if not any(report.seen for report in reports):
                break
    assert released == 1000
    ranks = await database.fetch(
        sql("select array_agg(rank order by rank) ranks from foliot.executions group by tenant_id")
    )
    assert [row["ranks"] for row in ranks] == [[float(n) for n in range(1, 201)]] * 5


async def test_a_row_in_use_is_passed_over_and_found_by_the_next_pass(
    database: Database, database_url: str
) -> None:
    job = await make_job(database)
    used, *_ = await make_executions(database, job, 3, status="RETRYING", available_at=NOW)
    async with Database(database_url) as other:
        async with other.transaction() as session:
            await session.execute(LOCK_ROW, used.execution_id)
            assert await release_due(database, now=NOW) == ReleaseReport(3, 2, 0, NOW)
        assert await release_due(database, now=NOW) == ReleaseReport(1, 1, 0, NOW)


async def test_what_changed_while_the_release_waited_is_left_alone(
    database: Database, database_url: str
) -> None:
    job = await make_job(database)
    first, second, third = await make_executions(
        database, job, 3, status="PENDING", available_at=NOW
    )
    async with Database(database_url) as other:
        async with other.transaction() as session:
            await session.execute(
                sql("select foliot.lock_flows(array['default'], array[$1::uuid])"), job.tenant_id
            )
            releasing = asyncio.create_task(release_due(database, now=NOW))
            await until_blocked(session)
            await other.execute(
                sql("delete from foliot.executions where id = $1"), first.execution_id
            )
            await other.execute(
                sql("update foliot.executions set available_at = $2 where id = $1"),
                second.execution_id,
                NOW + SECOND,
            )
        assert await releasing == ReleaseReport(3, 1, 0, NOW)
        ranked = await other.fetch(sql("select id from foliot.executions where rank is not null"))
        assert [row["id"] for row in ranked] == [third.execution_id]


async def held_job(database: Database, held: int, **changes: Any) -> JobRow:  # noqa: ANN401
    job = await make_job(database, **changes)
    keys = {"limit_keys": changes["limit_keys"]} if "limit_keys" in changes else {}
    await make_executions(database, job, held, status="WAITING", available_at=NOW, **keys)
    return job


async def started(database: Database, job: JobRow) -> list[datetime]:
    rows = await database.fetch(
        sql(
            "select scheduled_time from foliot.executions"
            " where job_id = $1 and hold is distinct from 'OVERLAP' order by 1"
        ),
        job.job_id,
    )
    return [row["scheduled_time"] for row in rows]


async def test_the_oldest_held_execution_starts_when_nothing_is_under_way(
    database: Database,
) -> None:
    job = await held_job(database, 3)
    report = await release_overlaps(database, now=NOW)
    first = sql("select scheduled_time from foliot.executions order by scheduled_time limit 1")
    assert await started(database, job) == [await database.fetch_value(first)]
    assert len(report.released) == 1
    assert (await release_overlaps(database, now=NOW)).released == (), "it is under way now"
    (row,) = await database.fetch(sql("select * from foliot.executions where hold is null"))
    assert (row["status"], row["queued_at"]) == ("QUEUED", NOW)
    assert row["rank"] > 0


@pytest.mark.parametrize(
    "under_way",
    [
        {"status": "PENDING"},
        {"status": "QUEUED"},
        {"status": "QUEUED", "trigger": "AFTER"},
        {"status": "RUNNING"},
        {"status": "RETRYING"},
        {"status": "WAITING", "hold": "LIMIT"},
        {"status": "WAITING", "hold": "BREAKER"},
    ],
)
async def test_a_held_execution_waits_while_another_is_under_way(
    database: Database, under_way: dict[str, Any]
) -> None:
    job = await held_job(database, 2)
    await make_execution(database, job, **under_way)
    assert (await release_overlaps(database, now=NOW)).released == ()


async def test_under_allow_what_was_held_before_starts_beside_what_is_under_way(
    database: Database,
) -> None:
    """With ALLOW instants start beside each other, so that something may be under way for ever."""
    job = await held_job(database, 2)
    await make_execution(database, job, status="RUNNING")
    await database.execute(sql("update foliot.jobs set overlap_policy = 'ALLOW'"))
    for _ in range(2):
        assert len((await release_overlaps(database, now=NOW)).released) == 1
    assert len(await started(database, job)) == 3


async def test_what_somebody_asked_for_does_not_hold_the_schedule(database: Database) -> None:
    job = await held_job(database, 1)
    await make_execution(database, job, trigger="MANUAL")
    assert len((await release_overlaps(database, now=NOW)).released) == 1


async def test_a_held_execution_keeps_to_its_time_and_its_limits(database: Database) -> None:
    limited = await held_job(database, 2, limit_keys=["queue:default"])
    early = await make_job(database)
    await make_execution(database, early, status="WAITING", available_at=NOW + SECOND)
    await release_overlaps(database, now=NOW)
    assert await started(database, early) == []
    assert len(await started(database, limited)) == 1
    holds = await database.fetch(sql("select hold from foliot.executions order by hold"))
    assert [row["hold"] for row in holds] == ["LIMIT", "OVERLAP", "OVERLAP"]


async def test_jobs_with_held_executions_are_walked_page_by_page(database: Database) -> None:
    for _ in range(5):
        await held_job(database, 1)
    released, after, pages = 0, None, 0
    while pages == 0 or after is not None:
        report = await release_overlaps(database, after, jobs=2, now=NOW)
        released, after, pages = released + len(report.released), report.after, pages + 1
    assert (released, pages) == (5, 3)


async def test_eight_releasers_start_one_execution_of_a_job(
    database: Database, database_url: str
) -> None:
    jobs = [await held_job(database, 5) for _ in range(10)]
    async with Database(database_url, ConnectionOptions(max_connections=8)) as nodes:
        reports = await asyncio.gather(*(release_overlaps(nodes, now=NOW) for _ in range(8)))
    assert sum(len(report.released) for report in reports) == 10
    assert [len(await started(database, job)) for job in jobs] == [1] * 10


async def test_a_job_that_is_being_fired_is_left_for_the_next_pass(
    database: Database, database_url: str
) -> None:
    """The fire may be starting one, which nobody else can see yet."""
    job = await held_job(database, 1)
    async with Database(database_url) as other:
        async with other.transaction() as session:
            await session.execute(
                sql("select from foliot.jobs where id = $1 for no key update"), job.job_id
            )
            assert (await release_overlaps(database, now=NOW)).released == ()
        assert len((await release_overlaps(database, now=NOW)).released) == 1
