"""A dead letter is replayed once, by however many, and whatever is lost on the way."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import asyncpg
import pytest

from foliot.core.errors import DeadLetterClosed, JobNotFound, UnresolvedKey
from foliot.core.ids import ExecutionId, replayed_execution
from foliot.core.model import Json
from foliot.core.retry import DeadLetterReason
from foliot.core.states import ExecutionEvent
from foliot.store.connecting import ConnectionOptions
from foliot.store.database import Database
from foliot.store.dead_letters import DeadLetterKind, discard, read_letter
from foliot.store.enqueuing import Absent
from foliot.store.errors import CommitUnknown, DatabaseUnreachable
from foliot.store.finishing import Outcome, finish
from foliot.store.replaying import Asker, Replay, Replayed, ReplayReport, replay, retry_ended
from foliot.testing.database import sql
from foliot.testing.deliveries import make_ended
from foliot.testing.letters import limit_by_key, make_letters
from foliot.testing.proxy import NodeProxy
from foliot.testing.rows import DEFAULT_TENANT, NOW, JobRow, make_job
from foliot.testing.running import make_running, until_blocked

LIVE = sql("select * from foliot.executions")
COUNT = sql("select count(*) from foliot.executions")
DELETE = sql("update foliot.jobs set status = 'DELETED' where id = $1")
LOCK = sql("select from foliot.dead_letters where id = $1 for update")
LATER = NOW + timedelta(hours=1)


ADD_VERSION = sql(
    "insert into foliot.job_versions (job_id, tenant_id, version, schedule_version, status,"
    " definition, payload, changed_by, valid_from)"
    " select job_id, tenant_id, 2, schedule_version, status,"
    " definition || jsonb_build_object('concurrency',"
    " jsonb_build_object('key', $2::text, 'limit', 5)),"
    """ '{"user": "b"}', changed_by, valid_from from foliot.job_versions where job_id = $1"""
)
USE_VERSION = sql("update foliot.jobs set version = 2 where id = $1")


async def add_version(database: Database, job: JobRow, template: str | None) -> None:
    await database.execute(ADD_VERSION, job.job_id, template)
    await database.execute(USE_VERSION, job.job_id)


async def live(database: Database) -> asyncpg.Record:
    (row,) = await database.fetch(LIVE)
    return row


async def replay_all(database: Database, letters: Sequence[ExecutionId]) -> ReplayReport:
    return await replay(database, DEFAULT_TENANT, [Replay(each) for each in letters])


async def test_a_replay_is_a_new_execution_that_names_the_old(database: Database) -> None:
    job = await make_job(database, payload={"job": 1}, tags=["a"])
    (letter,) = await make_letters(database, job=job, labels={"a": "b"}, priority=3)
    old = await read_letter(database, DEFAULT_TENANT, letter)
    report = await replay(database, DEFAULT_TENANT, [Replay(letter, trace_id="t")], now=LATER)
    row = await live(database)
    assert report.replayed == {letter: Replayed(ExecutionId(row["id"]), created=True)}
    assert report.queues == {"default"}
    expected = {
        "id": replayed_execution(letter, NOW),
        "status": "QUEUED",
        "trigger": "REPLAY",
        "retry_of": letter,
        "idempotency_key": str(letter),
        "priority": 3,
        "labels": {"a": "b"},
        "tags": ["a"],
        "trace_id": "t",
        "payload": None,
        "scheduled_time": old.scheduled_time,
        "available_at": LATER,
        "attempt_number": 0,
        "run_alone": False,
    }
    assert {name: row[name] for name in expected} == expected
    closed = await read_letter(database, DEFAULT_TENANT, letter)
    assert (closed.kind, closed.replayed_as, closed.replayed_at) == (
        DeadLetterKind.REPLAYED,
        row["id"],
        LATER,
    )


@pytest.mark.parametrize(
    ("own", "override", "expected"),
    [
        (Absent.ABSENT, Absent.ABSENT, None),
        ({"n": 1}, Absent.ABSENT, '{"n": 1}'),
        (Absent.ABSENT, {"n": 2}, '{"n": 2}'),
        ({"n": 1}, None, "null"),
        ({"n": 1}, {"n": "${secrets.TOKEN}"}, '{"n": "${secrets.TOKEN}"}'),
    ],
)
async def test_only_what_the_job_itself_says_stays_the_jobs(
    database: Database, own: Json | Absent, override: Json | Absent, expected: str | None
) -> None:
    """A payload on the row came with a request, and no secret is ever filled into it."""
    job = await make_job(database, payload={"token": "${secrets.TOKEN}"})
    given = {} if own is Absent.ABSENT else {"payload": own}
    (letter,) = await make_letters(database, job=job, **given)
    await replay(database, DEFAULT_TENANT, [Replay(letter, override)], now=NOW)
    assert (
        await database.fetch_value(sql("select payload::text from foliot.executions")) == expected
    )


async def test_it_runs_by_the_jobs_current_version(database: Database) -> None:
    job = await make_job(database)
    (letter,) = await make_letters(database, job=job)
    await database.execute(sql("update foliot.jobs set version = 2, status = 'PAUSED'"))
    await replay(database, DEFAULT_TENANT, [Replay(letter)], now=NOW)
    assert (await live(database))["job_version"] == 2


async def test_the_idempotency_key_goes_on_from_replay_to_replay(database: Database) -> None:
    (letter,) = await make_letters(database, idempotency_key="first")
    await replay(database, DEFAULT_TENANT, [Replay(letter)], now=NOW)
    assert (await live(database))["idempotency_key"] == "first"


async def test_poison_runs_alone_from_the_beginning(database: Database) -> None:
    (letter,) = await make_letters(database, reason=DeadLetterReason.POISON)
    await replay(database, DEFAULT_TENANT, [Replay(letter)], now=NOW)
    assert (await live(database))["run_alone"]


async def test_a_second_replay_gets_what_the_first_made(database: Database) -> None:
    (letter,) = await make_letters(database)
    first = await replay_all(database, [letter])
    again = await replay(database, DEFAULT_TENANT, [Replay(letter, {"other": 1})])
    assert again.replayed[letter] == Replayed(first.replayed[letter].execution_id, created=False)
    await database.execute(sql("delete from foliot.executions"))
    once_more = await replay_all(database, [letter])
    assert once_more.replayed == again.replayed, "also when it is over"
    assert await database.fetch_value(COUNT) == 0


async def test_sixteen_at_once_make_one_execution_of_each_letter(
    database: Database, database_url: str
) -> None:
    letters = await make_letters(database, 20)
    async with Database(database_url, ConnectionOptions(max_connections=16)) as other:
        reports = await asyncio.gather(
            *(replay_all(other, letters[number:] + letters[:number]) for number in range(8)),
            *(replay_all(other, [letters[number]]) for number in range(8)),
        )
    made = {row["retry_of"]: row["id"] for row in await database.fetch(LIVE)}
    assert len(made) == await database.fetch_value(COUNT) == 20
    created = [
        letter for report in reports for letter, found in report.replayed.items() if found.created
    ]
    assert sorted(created) == letters, "each by one of them"
    for report in reports:
        assert not report.refused
        for letter, found in report.replayed.items():
            assert found.execution_id == made[letter]


async def test_who_waits_for_another_sees_what_that_one_decided(
    database: Database, database_url: str
) -> None:
    (letter,) = await make_letters(database)
    async with Database(database_url) as other, other.transaction() as session:
        await session.execute(LOCK, letter)
        waiting = asyncio.create_task(replay_all(database, [letter]))
        await until_blocked(session)
        await session.execute(
            sql(
                "update foliot.dead_letters set discarded_at = $2, discard_reason = 'no use'"
                " where id = $1"
            ),
            letter,
            NOW,
        )
    report = await waiting
    assert await database.fetch_value(COUNT) == 0
    assert isinstance(report.refused[letter], DeadLetterClosed)


async def test_a_discard_and_a_replay_at_once_are_one_of_the_two(database: Database) -> None:
    letters = await make_letters(database, 12)
    await asyncio.gather(
        *(replay_all(database, [letter]) for letter in letters),
        *(discard(database, DEFAULT_TENANT, letter, "no use") for letter in letters),
        return_exceptions=True,
    )
    found = [await read_letter(database, DEFAULT_TENANT, letter) for letter in letters]
    replayed = {letter.replayed_as for letter in found if letter.kind is DeadLetterKind.REPLAYED}
    assert {row["id"] for row in await database.fetch(LIVE)} == replayed
    assert all(letter.kind is not DeadLetterKind.OPEN for letter in found)


@pytest.mark.parametrize("delivered", [True, False], ids=["committed", "never arrived"])
async def test_after_a_lost_answer_there_is_one_or_none_and_then_one(
    database: Database, database_url: str, delivered: bool
) -> None:
    (letter,) = await make_letters(database)
    async with NodeProxy(database_url) as proxy, Database(proxy.url) as far:
        proxy.cut_at(b"foliot.replay(", deliver=delivered)
        with pytest.raises((CommitUnknown, DatabaseUnreachable)):
            await replay_all(far, [letter])
        assert await database.fetch_value(COUNT) == int(delivered)
        again = await replay_all(far, [letter])
    assert again.replayed[letter].created is not delivered
    assert (await live(database))["id"] == again.replayed[letter].execution_id


async def test_a_server_that_dies_in_the_middle_leaves_both_or_neither(
    database: Database, database_url: str
) -> None:
    """It waits to insert the execution when its connection is ended."""
    (letter,) = await make_letters(database)
    async with Database(database_url) as other, other.transaction() as session:
        await session.execute(sql("lock table foliot.executions in exclusive mode"))
        waiting = asyncio.create_task(replay_all(database, [letter]))
        await until_blocked(session)
        await session.execute(
            sql(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where wait_event_type = 'Lock' and query like '%foliot.replay(%'"
            )
        )
        with pytest.raises(CommitUnknown):
            await waiting
    assert await database.fetch_value(COUNT) == 0
    assert (await read_letter(database, DEFAULT_TENANT, letter)).kind is DeadLetterKind.OPEN
    assert (await replay_all(database, [letter])).replayed[letter].created


async def test_a_letter_of_a_deleted_job_is_refused_and_the_others_are_not(
    database: Database,
) -> None:
    job = await make_job(database)
    (orphan,) = await make_letters(database, job=job)
    others = await make_letters(database, 2)
    await database.execute(DELETE, job.job_id)
    report = await replay_all(database, [*others, orphan])
    assert isinstance(report.refused[orphan], JobNotFound)
    assert sorted(report.replayed) == others
    assert await database.fetch_value(COUNT) == 2
    assert (await read_letter(database, DEFAULT_TENANT, orphan)).kind is DeadLetterKind.OPEN


async def test_a_job_that_is_deleted_meanwhile_is_seen(
    database: Database, database_url: str
) -> None:
    """The replay has read it, and waits for its row, when it goes."""
    job = await make_job(database)
    (orphan,) = await make_letters(database, job=job)
    (letter,) = await make_letters(database)
    async with Database(database_url) as other, other.transaction() as session:
        await session.execute(DELETE, job.job_id)
        waiting = asyncio.create_task(replay_all(database, [letter, orphan]))
        await until_blocked(session)
    report = await waiting
    assert isinstance(report.refused[orphan], JobNotFound)
    assert report.replayed[letter].created


def key(subject: str) -> str:
    return f"key:{DEFAULT_TENANT}:{subject}"


async def test_a_replay_is_under_the_concurrency_key_that_its_payload_makes(
    database: Database,
) -> None:
    job = await make_job(database, payload={"user": "a"})
    await limit_by_key(database, job, "${payload.user}", 5)
    one, two, three = await make_letters(database, 3, job=job, limit_keys=[key("a")])
    wanted = [Replay(one), Replay(two, {"user": "b"}), Replay(three, {"nobody": 1})]
    report = await replay(database, DEFAULT_TENANT, wanted, now=NOW)
    assert isinstance(report.refused[three], UnresolvedKey)
    found = {row["retry_of"]: row for row in await database.fetch(LIVE)}
    assert found[one]["limit_keys"] == [key("a")]
    assert found[two]["limit_keys"] == [key("b")]
    assert {row["status"] for row in found.values()} == {"WAITING"}


async def succeed(database: Database, job: JobRow, limit_keys: list[str]) -> ExecutionId:
    worker, (row,) = await make_running(database, 1, job=job, limit_keys=limit_keys)
    await finish(
        database, worker, [Outcome(row.execution_id, row.fence, ExecutionEvent.SUCCEED)], NOW
    )
    return row.execution_id


@pytest.mark.parametrize(
    ("template", "was_under", "now_under"),
    [
        ("${payload.user}", "a", "b"),
        ("${payload.user}", "mine", "mine"),
        ("everybody", "everybody", None),
        ("everybody", "mine", "mine"),
        (None, "mine", "mine"),
    ],
)
@pytest.mark.parametrize("has_letter", [True, False])
async def test_a_key_that_came_with_a_request_stays_and_the_jobs_own_is_made_anew(
    database: Database,
    template: str | None,
    was_under: str,
    now_under: str | None,
    has_letter: bool,
) -> None:
    """Its job has another version by now, with another payload and another key of its own."""
    job = await make_job(database, payload={"user": "a"})
    await limit_by_key(database, job, template, 5)
    keys = ["tenant:wide", key(was_under)]
    if has_letter:
        (old,) = await make_letters(database, job=job, limit_keys=keys)
    else:
        old = await succeed(database, job, keys)
    await add_version(database, job, template and template.replace("everybody", "others"))
    if has_letter:
        await replay(database, DEFAULT_TENANT, [Replay(old)], now=NOW)
    else:
        await retry_ended(database, DEFAULT_TENANT, Replay(old), "mark", NOW)
    expected = None if now_under is None else [key(now_under)]
    assert (await live(database))["limit_keys"] == expected, "the row of the job has no key of it"


async def test_a_delay_parks_it(database: Database) -> None:
    (letter,) = await make_letters(database)
    await replay(database, DEFAULT_TENANT, [Replay(letter, delay_seconds=60)], now=NOW)
    row = await live(database)
    assert (row["status"], row["available_at"]) == ("PENDING", NOW + timedelta(seconds=60))


async def test_what_succeeded_is_run_again_under_a_new_idempotency_key(database: Database) -> None:
    (done,) = await make_ended(database, "https://example.com")
    for mark in ("first", "first", "second"):
        report = await retry_ended(database, DEFAULT_TENANT, Replay(done), mark)
        assert report is not None
    rows = await database.fetch(LIVE)
    assert len(rows) == 2, "a copy of a request makes no other"
    old_time = await database.fetch_value(sql("select scheduled_time from foliot.attempts"))
    for row in rows:
        assert (row["trigger"], row["retry_of"], row["idempotency_key"]) == ("RETRY", done, None)
        assert row["scheduled_time"] == old_time != row["available_at"]


async def test_a_retry_of_a_dead_letter_is_told_from_a_replay(database: Database) -> None:
    (letter,) = await make_letters(database)
    await replay(database, DEFAULT_TENANT, [Replay(letter)], Asker.RETRY, NOW)
    row = await live(database)
    assert (row["trigger"], row["id"]) == ("RETRY", replayed_execution(letter, NOW))
