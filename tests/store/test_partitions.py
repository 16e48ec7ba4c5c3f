"""Days of the history on a real server: there before they are needed, and never in the way."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

import pytest

from foliot.runtime.clock import SystemClock
from foliot.store.database import Database
from foliot.store.errors import TransactionConflict
from foliot.store.migrate import migrate
from foliot.store.partitions import DAYS_AHEAD, PartitionsReport, provide_partitions
from foliot.testing.database import sql

FAR = datetime(2091, 3, 1, 0, 30, tzinfo=UTC)
PARTITIONS = sql(
    "select array_agg(inhrelid::regclass::text) from pg_inherits"
    " where inhparent = 'foliot.attempts'::regclass"
)
INSERT = sql("""
insert into foliot.attempts
  (id, fence, attempt_number, tenant_id, job_id, job_version, job_name, tags, status, final,
   trigger, queue, priority, scheduled_time, available_at, finished_at)
select gen_random_uuid(), 1, 1, gen_random_uuid(), gen_random_uuid(), 1, 'job', '{}', 'SUCCEEDED',
       true, 'SCHEDULE', 'default', 5, $1, $1, $1
  from generate_series(1, $2::integer)
""")
WHERE = sql(
    "select tableoid::regclass::text as place, count(*)::integer as n"
    " from foliot.attempts group by 1"
)
HOLD = sql("set local idle_in_transaction_session_timeout = 0")


async def provide(database: Database, now: datetime, days: int = 1) -> PartitionsReport:
    async with database.connection() as session:
        return await provide_partitions(session, now, days)


async def places(database: Database) -> dict[str, int]:
    found = {row["place"]: row["n"] for row in await database.fetch(WHERE)}
    return {place.removeprefix("foliot."): n for place, n in found.items()}


async def partitions(database: Database) -> Sequence[str]:
    names: list[str] = await database.fetch_value(PARTITIONS)
    return sorted(name.removeprefix("foliot.") for name in names)


async def test_a_migrated_database_can_finish_at_once(database: Database) -> None:
    now = await database.fetch_value(sql("select statement_timestamp()"))
    for days in (-1, 0, DAYS_AHEAD):
        await database.execute(INSERT, now + timedelta(days=days), 1)
    found = await places(database)
    assert "attempts_default" not in found
    assert len(found) == 3
    assert len(await partitions(database)) == DAYS_AHEAD + 3


async def test_days_are_made_from_yesterday_on_in_utc(database: Database) -> None:
    async with database.transaction() as session:
        await session.execute(sql("set local timezone = 'Asia/Tokyo'"))
        report = await provide_partitions(session, FAR, 2)
    assert report.created == tuple(date(2091, 2, 28) + timedelta(days=n) for n in range(4))
    midnight = datetime(2091, 3, 1, tzinfo=UTC)
    await database.execute(INSERT, midnight, 1)
    await database.execute(INSERT, midnight - timedelta(microseconds=1), 2)
    assert await places(database) == {"attempts_20910301": 1, "attempts_20910228": 2}


async def test_what_is_there_is_left_alone(database: Database) -> None:
    assert len((await provide(database, FAR)).created) == 3
    assert await provide(database, FAR) == PartitionsReport((), ())
    assert (await provide(database, FAR + timedelta(days=1))).created == (date(2091, 3, 3),)


async def test_a_day_nobody_made_is_made_with_its_rows(database: Database) -> None:
    old = FAR - timedelta(days=40)
    await database.execute(INSERT, old, 5)
    await database.execute(INSERT, FAR, 7)
    assert await places(database) == {"attempts_default": 12}
    report = await provide(database, FAR)
    assert old.date() in report.created, "whatever lies in the default partition gets its day"
    assert report.crowded == ()
    assert await places(database) == {"attempts_20910120": 5, "attempts_20910301": 7}


async def test_a_crowded_day_stays_and_the_others_are_made(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("foliot.store.partitions.MOVED_ROWS", 10)
    await database.execute(INSERT, FAR, 11)
    await database.execute(INSERT, FAR + timedelta(days=1), 10)
    report = await provide(database, FAR)
    assert report == PartitionsReport((date(2091, 2, 28), date(2091, 3, 2)), (date(2091, 3, 1),))
    assert await places(database) == {"attempts_default": 11, "attempts_20910302": 10}
    assert "history of 2091-03-01 stays in the default partition" in caplog.text
    await database.execute(INSERT, FAR, 1)
    assert (await places(database))["attempts_default"] == 12


@pytest.mark.parametrize("trial", range(3))
async def test_ten_nodes_at_once_make_each_day_once(database: Database, trial: int) -> None:
    now = FAR + timedelta(days=100 * trial)
    await database.execute(INSERT, now, 100)
    async with asyncio.TaskGroup() as group:
        for _ in range(10):
            group.create_task(provide(database, now, 3))
    assert len(await partitions(database)) == DAYS_AHEAD + 3 + 5
    assert await places(database) == {f"attempts_{now:%Y%m%d}": 100}


async def test_writers_go_on_while_days_are_made(database: Database) -> None:
    """An open transaction that has written to a day stops nobody from making the next."""
    await provide(database, FAR)
    async with database.transaction() as writer:
        await writer.execute(HOLD)
        await writer.execute(INSERT, FAR, 1)
        assert len((await provide(database, FAR + timedelta(days=10))).created) == 3
        async with database.transaction() as maker:
            await provide_partitions(maker, FAR + timedelta(days=20), 1)
            await database.execute(INSERT, FAR, 1)
    assert await places(database) == {"attempts_20910301": 2}


async def test_a_busy_default_partition_is_not_waited_for(database: Database) -> None:
    """Behind a waiting exclusive lock every reader would queue."""
    async with database.transaction() as writer:
        await writer.execute(HOLD)
        await writer.execute(INSERT, FAR, 1)
        with pytest.raises(TransactionConflict) as caught:
            async with asyncio.timeout(0.9):
                await provide(database, FAR)
    assert caught.value.sqlstate == "55P03"
    assert len((await provide(database, FAR)).created) == 3
    assert await places(database) == {"attempts_20910301": 1}


async def test_a_partition_is_like_its_parent(database: Database) -> None:
    await provide(database, FAR)
    count = "select count(*) from pg_indexes where schemaname = 'foliot' and tablename = '{}'"
    indexes = [
        await database.fetch_value(sql(count.format(name)))
        for name in ("attempts", "attempts_20910301", "attempts_default")
    ]
    assert indexes[0] > 0
    assert len(set(indexes)) == 1
    options = sql("select reloptions from pg_class where relname = 'attempts_20910301'")
    assert await database.fetch_value(options) == ["autovacuum_freeze_min_age=0"]


async def test_a_reader_of_the_history_keeps_nobody_from_starting(
    database: Database, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    await database.execute(sql(f"drop table foliot.{(await partitions(database))[0]}"))
    async with database.transaction() as reader:
        await reader.execute(HOLD)
        await reader.fetch(sql("select from foliot.attempts"))
        assert await migrate(database_url, SystemClock()) == ()
    assert "partitions are left for later" in caplog.text
    await migrate(database_url, SystemClock())
    assert len(await partitions(database)) == DAYS_AHEAD + 3
