"""Dead letters that their jobs want replayed after a while are, once, by whichever scheduler."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from foliot.core.ids import ExecutionId
from foliot.core.retry import DeadLetterReason
from foliot.runtime.metrics import DEAD_LETTERS_OPEN, OLDEST_DEAD_LETTER
from foliot.scheduler.replay import PAUSE_SECONDS, AutoReplay, AutoReplayed, WatchDeadLetters
from foliot.store.database import Database
from foliot.store.dead_letters import DeadLetterKind, discard, read_letter
from foliot.store.errors import TransactionConflict
from foliot.testing.database import sql
from foliot.testing.letters import ask_for_replays, make_letters
from foliot.testing.rows import DEFAULT_TENANT, NOW, JobRow, make_job, make_tenant

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
COUNT = sql("select count(*) from foliot.executions")
DUE = sql("select count(*) from foliot.dead_letters where replay_at is not null")


async def make_asking_job(database: Database, **changes: Any) -> JobRow:  # noqa: ANN401
    job = await make_job(database, **changes)
    await ask_for_replays(database, job, 3600.0)
    return job


async def kind_of(database: Database, letter: ExecutionId) -> DeadLetterKind:
    return (await read_letter(database, DEFAULT_TENANT, letter)).kind


async def test_a_letter_is_replayed_when_its_time_comes(database: Database) -> None:
    (letter,) = await make_letters(database, job=await make_asking_job(database))
    (other,) = await make_letters(database)
    assert (await read_letter(database, DEFAULT_TENANT, letter)).replay_at == NOW + HOUR
    trade = AutoReplay(database)
    assert await trade.run_once(NOW + HOUR - SECOND) == AutoReplayed()
    assert await trade.run_once(NOW + HOUR) == AutoReplayed(replayed=1)
    assert await trade.run_once(NOW + HOUR) == AutoReplayed()
    assert await kind_of(database, letter) is DeadLetterKind.REPLAYED
    assert await kind_of(database, other) is DeadLetterKind.OPEN
    assert await database.fetch_value(COUNT) == 1


async def test_many_schedulers_at_once_replay_each_once(database: Database) -> None:
    """Of two tenants, in batches that do not hold all of them."""
    job = await make_asking_job(database)
    theirs = await make_asking_job(database, tenant_id=await make_tenant(database))
    await make_letters(database, 8, job=job)
    await make_letters(database, 5, job=theirs)
    trades = [AutoReplay(database, batch=4) for _ in range(4)]
    replayed = 0
    while any(trade.pause_seconds == 0 for trade in trades) or not replayed:
        passes = await asyncio.gather(*(trade.run_once(NOW + HOUR) for trade in trades))
        replayed += sum(one.replayed for one in passes)
    assert replayed == await database.fetch_value(COUNT) == 13
    assert {trade.pause_seconds for trade in trades} == {PAUSE_SECONDS}


@pytest.mark.parametrize("case", ["poison", "replayed before", "no policy"])
async def test_what_is_not_replayed_by_itself(database: Database, case: str) -> None:
    job = await make_asking_job(database)
    reason = DeadLetterReason.EXHAUSTED
    changes: dict[str, Any] = {}
    if case == "poison":
        reason = DeadLetterReason.POISON
    elif case == "replayed before":
        changes = {"retry_of": job.job_id}
    else:
        await ask_for_replays(database, job, None)
    await make_letters(database, job=job, reason=reason, **changes)
    assert await database.fetch_value(DUE) == 0


async def test_what_was_decided_before_is_left_alone(database: Database) -> None:
    (letter,) = await make_letters(database, job=await make_asking_job(database))
    await discard(database, DEFAULT_TENANT, letter, "no use", NOW)
    assert await AutoReplay(database).run_once(NOW + HOUR) == AutoReplayed()


@pytest.mark.parametrize("case", ["deleted", "asks no more"])
async def test_what_cannot_be_replayed_is_in_nobodys_way(database: Database, case: str) -> None:
    job = await make_asking_job(database)
    (stuck,) = await make_letters(database, job=job)
    (letter,) = await make_letters(database, job=await make_asking_job(database))
    if case == "deleted":
        await database.execute(
            sql("update foliot.jobs set status = 'DELETED' where id = $1"), job.job_id
        )
    else:
        await ask_for_replays(database, job, None)
    trade = AutoReplay(database)
    assert await trade.run_once(NOW + HOUR) == AutoReplayed(replayed=1, left=1)
    assert await trade.run_once(NOW + HOUR) == AutoReplayed()
    assert await kind_of(database, stuck) is DeadLetterKind.OPEN
    assert await kind_of(database, letter) is DeadLetterKind.REPLAYED


async def test_one_that_the_database_refuses_keeps_no_other_from_it(database: Database) -> None:
    job = await make_asking_job(database)
    stuck, *_ = await make_letters(database, 3, job=job)
    await database.execute(
        sql(f"alter table foliot.executions add constraint no_such check (retry_of <> '{stuck}')")
    )
    assert await AutoReplay(database).run_once(NOW + HOUR) == AutoReplayed(replayed=2, left=1)
    assert await kind_of(database, stuck) is DeadLetterKind.OPEN
    assert await database.fetch_value(DUE) == 2, "of those that were replayed"


FULL = """
create function foliot.full_disk() returns trigger language plpgsql as $$
begin
  raise exception 'no space left on device' using errcode = '53100';
end $$;
create trigger full_disk before insert on foliot.executions
   for each row execute function foliot.full_disk();
"""


async def test_a_full_disk_takes_no_replay_away(database: Database) -> None:
    await make_letters(database, job=await make_asking_job(database))
    async with database.connection() as session:
        await session.run_script("fill", FULL, timeout_seconds=5)
    trade = AutoReplay(database)
    with pytest.raises(TransactionConflict, match="disk is full"):
        await trade.run_once(NOW + HOUR)
    async with database.connection() as session:
        script = "drop trigger full_disk on foliot.executions"
        await session.run_script("free", script, timeout_seconds=5)
    assert await trade.run_once(NOW + HOUR) == AutoReplayed(replayed=1)


async def test_depth_and_age_are_told(database: Database) -> None:
    await make_letters(database, 2)
    await WatchDeadLetters(database).run_once(NOW + HOUR)
    assert DEAD_LETTERS_OPEN._value.get() == 2
    assert OLDEST_DEAD_LETTER._value.get() == 3600
