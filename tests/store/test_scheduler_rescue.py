"""Passes that pick up what others let fall, and the patience they have after an outage."""

import asyncio
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import pytest

from foliot.core.ids import WorkerId
from foliot.runtime.metrics import EXECUTIONS_EXPIRED, EXECUTIONS_RESCUED, WORKER_DEATHS
from foliot.scheduler.rescue import Ended, EndOverdue, Expire, Expired, Rescue, Rescued
from foliot.store.connecting import ConnectionOptions
from foliot.store.database import Database
from foliot.store.errors import CommitUnknown, DatabaseUnreachable, TransactionConflict
from foliot.store.rescuing import RescueReport
from foliot.store.statements import Statement, statement
from foliot.store.workers import beat
from foliot.testing.clock import ManualClock
from foliot.testing.database import sql
from foliot.testing.proxy import NodeProxy
from foliot.testing.rows import NOW, make_executions, make_job, make_worker
from foliot.testing.running import make_running

WORKERS = sql("select status, count(*) from foliot.workers where capacity > 0 group by 1")
ATTEMPTS = sql("select status, count(*) from foliot.attempts group by 1")
LIVE = sql("select status, count(*) from foliot.executions group by 1")


def seconds(number: float) -> datetime:
    return NOW + timedelta(seconds=number)


class Scheduler:
    """One node's rescue and its clock; `watch` is a pass in every second."""

    def __init__(self, database: Database) -> None:
        self.clock = ManualClock()
        self.rescue = Rescue(database, self.clock)
        self.end_overdue = EndOverdue(database, self.clock)

    async def watch(self, first: int, last: int) -> Rescued:
        """All passes but the first are a second apart."""
        for second in range(first, last + 1):
            report = await self.look(second)
        return report

    async def look(self, second: float) -> Rescued:
        self.clock.seconds = float(second)
        await self.end_overdue.run_once(seconds(second))
        return await self.rescue.run_once(seconds(second))


async def counts(database: Database, question: Statement) -> dict[str, int]:
    return dict(map(tuple, await database.fetch(question)))


async def hold(database: Database, number: int) -> WorkerId:
    """A worker that was last heard at `NOW` and holds that many, none of them for long."""
    worker, _ = await make_running(database, number, claimed_at=seconds(1000))
    return worker


async def beats(database: Database, worker: WorkerId, second: float) -> None:
    assert await beat(database, worker, [], seconds(second))


async def test_a_silent_worker_is_buried_and_rescued_from_within_seconds(
    database: Database,
) -> None:
    node = Scheduler(database)
    await node.watch(-20, 0)
    silent = await hold(database, 3)
    living = await hold(database, 2)
    await beats(database, living, 14)
    assert await node.watch(1, 15) == Rescued(judging=True)
    deaths, rescued = WORKER_DEATHS._value.get(), EXECUTIONS_RESCUED._value.get()
    assert await node.look(16) == Rescued(judging=True, buried=1, rescued=3)
    assert WORKER_DEATHS._value.get() - deaths == 1
    assert EXECUTIONS_RESCUED._value.get() - rescued == 3
    assert await counts(database, LIVE) == {"QUEUED": 3, "RUNNING": 2}
    assert await beat(database, silent, []) is None


async def test_a_scheduler_that_has_just_started_buries_nobody_for_a_whole_expiry(
    database: Database,
) -> None:
    """The database may have been away before it came."""
    await hold(database, 1)
    node = Scheduler(database)
    assert await node.watch(100, 114) == Rescued(judging=False)
    assert await node.look(115) == Rescued(judging=True, buried=1, rescued=1)


async def test_what_the_dead_hold_is_rescued_without_waiting(database: Database) -> None:
    """A worker that signed off, or was buried by another: there is no way back from DEAD."""
    worker = await make_worker(database, status="DEAD")
    await make_running(database, 2, worker_id=worker)
    assert await Scheduler(database).look(0) == Rescued(judging=False, rescued=2)


async def test_heartbeats_that_resume_after_an_outage_save_everything(
    database: Database, database_url: str
) -> None:
    """The database is away for a minute: nothing could be heard, and nothing is held against
    anybody. Who stays silent afterwards is buried one expiry later."""
    living = await hold(database, 2)
    silent = await hold(database, 1)
    unprepared = ConnectionOptions(prepare=False)
    async with NodeProxy(database_url) as proxy, Database(proxy.url, unprepared) as far:
        node = Scheduler(far)
        await node.watch(-20, 0)
        proxy.cut_at(b"end_of_it", deliver=False)
        with pytest.raises((DatabaseUnreachable, CommitUnknown)):
            await node.rescue.run_once(seconds(1))
        # The first good answer, sooner than any gap would tell.
        assert await node.look(2) == Rescued(judging=False)
        await beats(database, living, 6)
        assert await node.watch(3, 16) == Rescued(judging=False)
        assert await node.look(17) == Rescued(judging=True, buried=1, rescued=1)
    assert await beat(database, silent, []) is None


@pytest.mark.parametrize(
    "table", ["workers", "executions", "attempts", "dead_letters", "deliveries", "completions"]
)
async def test_while_no_heartbeat_or_end_can_be_written_silence_says_nothing(
    database: Database, table: str
) -> None:
    """As when somebody makes an index: reading goes on, and nobody is heard."""
    await hold(database, 1)
    node = Scheduler(database)
    await node.watch(-20, 0)
    for trade in (node.rescue, node.end_overdue):
        async with database.transaction() as session:
            await session.execute(sql(f"lock table foliot.{table} in share mode"))
            with pytest.raises(TransactionConflict, match="read_hearing"):
                await trade.run_once(seconds(1))
    assert await node.watch(2, 16) == Rescued(judging=False)
    assert await node.look(17) == Rescued(judging=True, buried=1, rescued=1)


async def test_who_cannot_write_an_end_takes_nobodys_silence_for_more(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a full disk: what seems overdue may have been over in time."""
    node = Scheduler(database)
    await node.watch(-20, 0)

    async def refused(*_: object) -> RescueReport:
        raise TransactionConflict("the server's disk is full", "53100")

    with monkeypatch.context() as patch:
        patch.setattr("foliot.scheduler.rescue.end_overdue", refused)
        with pytest.raises(TransactionConflict):
            await node.end_overdue.run_once(seconds(1))
    assert await node.end_overdue.run_once(seconds(2)) == Ended(judging=False)


async def test_a_standby_hears_nobody(database: Database) -> None:
    async def ask_one_that_can_only_be_read() -> None:
        async with database.transaction() as session:
            await session.execute(sql("set transaction read only"))
            await session.fetch_value(statement("workers/read_hearing"), None)

    with pytest.raises(DatabaseUnreachable, match="read-only"):
        await ask_one_that_can_only_be_read()


async def test_a_scheduler_that_was_frozen_looks_on_before_it_judges(database: Database) -> None:
    await hold(database, 1)
    node = Scheduler(database)
    await node.watch(-20, 0)
    assert await node.look(60) == Rescued(judging=False)
    assert await node.watch(61, 74) == Rescued(judging=False)
    assert await node.look(75) == Rescued(judging=True, buried=1, rescued=1)


async def test_a_judgement_is_as_of_the_time_of_the_look(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Held up on its way for as long as an outage takes, it must find nobody silent."""
    told: list[tuple[float, datetime | None]] = []

    async def late(_: Database, silent_seconds: float, now: datetime | None) -> tuple[()]:
        told.append((silent_seconds, now))
        return ()

    monkeypatch.setattr("foliot.scheduler.rescue.bury_silent", late)
    node = Scheduler(database)
    before = await database.fetch_value(sql("select statement_timestamp()"))
    for second in range(16):
        node.clock.seconds = second
        await node.rescue.run_once()
    ((silent_seconds, as_of),) = told
    assert silent_seconds == 15
    assert as_of is not None
    assert as_of > before


async def test_a_long_pass_is_no_gap(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    node = Scheduler(database)
    await node.watch(0, 15)

    async def slow(*_: object) -> RescueReport:
        node.clock.seconds += 4
        return RescueReport()

    monkeypatch.setattr("foliot.scheduler.rescue.rescue_left", slow)
    for number in range(1, 4):
        node.clock.seconds = 13 + 6.0 * number
        assert (await node.rescue.run_once(seconds(15 + number))).judging


async def test_a_walk_over_all_hands_that_takes_too_long_keeps_nobody_from_being_rescued(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As under a pinned snapshot: it is made seldom, and those who died lately need none."""
    walks: list[float] = []
    node = Scheduler(database)

    async def too_long(*_: object) -> RescueReport:
        walks.append(node.clock.seconds)
        node.clock.seconds += 4
        raise TransactionConflict("it took too long", "57014")

    monkeypatch.setattr("foliot.scheduler.rescue.rescue_lost", too_long)
    await node.watch(-25, 0)
    await hold(database, 3)
    assert await node.watch(1, 16) == Rescued(judging=True, buried=1, rescued=3)
    await node.watch(17, 95)
    assert walks == [-25, 16]
    await node.look(96)
    assert walks == [-25, 16, 96]


async def test_two_rescuers_at_once_take_each_execution_once(
    database: Database, database_url: str
) -> None:
    worker = await make_worker(database, status="DEAD")
    await make_running(database, 60, worker_id=worker)
    async with Database(database_url, ConnectionOptions(max_connections=4)) as nodes:
        trades = [Rescue(nodes, ManualClock(), page_rows=7) for _ in range(2)]
        first, second = await asyncio.gather(*(trade.run_once(NOW) for trade in trades))
        assert first.rescued + second.rescued == 60
    assert await counts(database, LIVE) == {"QUEUED": 60}


async def test_an_attempt_past_its_time_is_ended_also_in_living_hands(database: Database) -> None:
    """Timeout 300 s, grace 30 s, and five seconds more, of a job that says nothing else."""
    await make_running(database, 2, claimed_at=NOW)
    node = Scheduler(database)
    for second in range(320, 336):
        node.clock.seconds = second
        assert await node.end_overdue.run_once(seconds(second)) == Ended(second == 335)
    node.clock.seconds += 1
    assert await node.end_overdue.run_once(seconds(336)) == Ended(judging=True, ended=2)
    assert await counts(database, ATTEMPTS) == {"FAILED": 2}
    assert await counts(database, LIVE) == {"RETRYING": 2}


async def test_after_an_outage_results_have_time_to_arrive(database: Database) -> None:
    """What ended while the database was away is written by its worker, not timed out."""
    await make_running(database, 1, claimed_at=NOW)
    node = Scheduler(database)
    for second in range(300, 316):
        node.clock.seconds = second
        await node.end_overdue.run_once(seconds(second))
    for second in range(400, 415):
        node.clock.seconds = second
        assert await node.end_overdue.run_once(seconds(second)) == Ended(judging=False)
    assert await counts(database, LIVE) == {"RUNNING": 1}


async def test_start_deadlines_expire_to_the_last(database: Database) -> None:
    job = await make_job(database)
    await make_executions(database, job, 25, start_by=NOW)
    await make_executions(database, job, 2, start_by=seconds(1))
    before = EXECUTIONS_EXPIRED._value.get()
    expire = Expire(database, page_rows=10)
    assert await expire.run_once(NOW) == Expired(25)
    assert EXECUTIONS_EXPIRED._value.get() - before == 25
    assert await counts(database, LIVE) == {"QUEUED": 2}
    assert await counts(database, ATTEMPTS) == {"FAILED": 25}
    assert await counts(database, WORKERS) == {}


async def test_a_page_of_deadlines_that_takes_too_long_is_tried_with_fewer(
    database: Database, database_url: str
) -> None:
    """Each takes its payload to the dead letters: a thousand large ones are not done in time."""

    class Slow(Database):
        async def fetch(self, statement: Statement, *arguments: Any) -> list[Any]:  # noqa: ANN401
            if statement.name == "executions/expire" and arguments[0] > 2:
                raise TransactionConflict("it took too long", "57014", statement.name)
            return await super().fetch(statement, *arguments)

    job = await make_job(database)
    await make_executions(database, job, 7, start_by=NOW)
    async with Slow(database_url) as slow:
        trade = Expire(slow, page_rows=8)
        for _ in range(20):
            with suppress(TransactionConflict):
                await trade.run_once(seconds(1))
    assert await counts(database, LIVE) == {}
    assert await counts(database, ATTEMPTS) == {"FAILED": 7}
