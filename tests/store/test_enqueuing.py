"""Requests for executions: each once, whatever is sent twice, lost or sent at the same time."""

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from foliot.core.errors import IdempotencyKeyReused, InvalidInput, JobNotFound
from foliot.core.ids import ExecutionId, JobId, instant_of, scheduled_execution
from foliot.core.limits import key_limit
from foliot.core.model import Trigger
from foliot.store.connecting import ConnectionOptions
from foliot.store.database import Database
from foliot.store.enqueuing import Enqueued, Outcome, Request, Wanted, backfill, enqueue
from foliot.store.errors import CommitUnknown
from foliot.testing.database import sql
from foliot.testing.proxy import NodeProxy
from foliot.testing.rows import (
    DEFAULT_TENANT,
    NOW,
    make_execution,
    make_job,
    make_tenant,
    make_worker,
)

LIVE = sql("select * from foliot.executions order by created_at, id")
COUNT = sql("select count(*) from foliot.executions")
CREATED, EXISTS, FILLED, UNSETTLED = Outcome
HOUR = timedelta(hours=1)


def request(request_id: str = "r1", seen_at: datetime = NOW) -> Request:
    return Request(DEFAULT_TENANT, "POST /v1/executions", request_id, seen_at)


async def one(database: Database, wanted: Wanted, request_id: str = "r1") -> Enqueued:
    (answer,) = await enqueue(database, request(request_id), [wanted], NOW)
    return answer


async def test_a_trigger_inserts_a_claimable_execution_with_what_it_changes(
    database: Database,
) -> None:
    job = await make_job(database, priority=5, tags=["a"])
    wanted = Wanted(
        job.job_id,
        Trigger.MANUAL,
        payload={"x": [1]},
        priority=2,
        labels={"a": "b"},
        unique_key="u",
        idempotency_key="i",
        retry_of=ExecutionId(UUID(int=3)),
        trace_id="t",
    )
    answer = await one(database, wanted)
    assert answer.outcome is CREATED
    assert instant_of(answer.execution_id) == NOW
    (row,) = await database.fetch(LIVE)
    assert row["rank"] > 0
    expected = {
        "id": answer.execution_id,
        "tenant_id": DEFAULT_TENANT,
        "job_id": job.job_id,
        "job_version": 1,
        "status": "QUEUED",
        "trigger": "MANUAL",
        "queue": "default",
        "lane_id": job.lane_id,
        "priority": 2,
        "scheduled_time": NOW,
        "available_at": NOW,
        "queued_at": NOW,
        "job_name": job.name,
        "tags": ["a"],
        "labels": {"a": "b"},
        "payload": {"x": [1]},
        "unique_key": "u",
        "idempotency_key": "i",
        "retry_of": UUID(int=3),
        "trace_id": "t",
        "hold": None,
        "limit_keys": None,
    }
    assert {name: row[name] for name in expected} == expected


async def test_null_is_a_payload_and_no_payload_is_the_jobs(database: Database) -> None:
    job = await make_job(database)
    await enqueue(database, request(), [Wanted(job.job_id, payload=None), Wanted(job.job_id)], NOW)
    kept = await database.fetch(
        sql("select payload::text from foliot.executions order by rank, id")
    )
    assert sorted((row[0] for row in kept), key=str) == [None, "null"]


@pytest.mark.parametrize(
    ("changes", "available_at", "status"),
    [
        ({}, NOW, "QUEUED"),
        ({"run_at": NOW + HOUR}, NOW + HOUR, "PENDING"),
        ({"run_at": NOW - HOUR}, NOW - HOUR, "QUEUED"),
        ({"delay_seconds": 0.25}, NOW + timedelta(seconds=0.25), "PENDING"),
        ({"delay_seconds": 0}, NOW, "QUEUED"),
    ],
)
async def test_a_later_time_parks_it_without_a_rank(
    database: Database, changes: dict[str, float], available_at: datetime, status: str
) -> None:
    job = await make_job(database, start_deadline_seconds=60)
    await enqueue(database, request(), [Wanted(job.job_id, **changes)], NOW)  # type: ignore[arg-type]
    (row,) = await database.fetch(LIVE)
    assert (row["available_at"], row["status"]) == (available_at, status)
    assert (row["rank"] is None) is (status == "PENDING")
    assert row["start_by"] == max(available_at, NOW) + timedelta(seconds=60)


async def test_a_request_sent_again_gets_the_first_answer_even_when_it_is_over(
    database: Database,
) -> None:
    job = await make_job(database)
    first = await one(database, Wanted(job.job_id))
    await database.execute(sql("delete from foliot.executions"))
    later = request(seen_at=NOW + HOUR)
    for status in ("ACTIVE", "DELETED"):
        await database.execute(sql("update foliot.jobs set status = $1"), status)
        (again,) = await enqueue(database, later, [Wanted(job.job_id)], NOW + HOUR)
        assert again == Enqueued(first.execution_id, CREATED, replayed=True)
        assert await database.fetch_value(COUNT) == 0


async def test_one_key_cannot_be_two_requests(database: Database) -> None:
    job = await make_job(database)
    await one(database, Wanted(job.job_id, payload=1))
    with pytest.raises(IdempotencyKeyReused) as refusal:
        await one(database, Wanted(job.job_id, payload=2))
    assert refusal.value.key == "r1"
    other_tenant = await make_tenant(database)
    theirs = await make_job(database, tenant_id=other_tenant)
    mine = Request(other_tenant, "POST /v1/executions", "r1", NOW)
    assert (await enqueue(database, mine, [Wanted(theirs.job_id)], NOW))[0].outcome is CREATED


async def test_eight_senders_of_one_request_make_one_execution(
    database: Database, database_url: str
) -> None:
    job = await make_job(database)
    async with Database(database_url, ConnectionOptions(max_connections=8)) as other:
        answers = await asyncio.gather(
            *(
                enqueue(node, request(seen_at=NOW + n * HOUR), [Wanted(job.job_id)], NOW)
                for n in range(4)
                for node in (database, other)
            )
        )
    assert len({answer.execution_id for (answer,) in answers}) == 1
    assert sum(not answer.replayed for (answer,) in answers) == 1
    assert await database.fetch_value(COUNT) == 1


@pytest.mark.parametrize("delivered", [True, False])
async def test_a_request_whose_answer_was_lost_is_done_once(
    database: Database, database_url: str, delivered: bool
) -> None:
    job = await make_job(database)
    async with NodeProxy(database_url) as proxy, Database(proxy.url) as far:
        proxy.cut_at(b"r-lost", deliver=delivered)
        with pytest.raises(CommitUnknown):
            await enqueue(far, request("r-lost"), [Wanted(job.job_id)], NOW)
        (answer,) = await enqueue(far, request("r-lost", NOW + HOUR), [Wanted(job.job_id)], NOW)
    assert answer.replayed is delivered
    assert [row["id"] for row in await database.fetch(LIVE)] == [answer.execution_id]


async def test_a_job_must_be_there_be_the_tenants_and_not_be_deleted(database: Database) -> None:
    fine = await make_job(database)
    deleted = await make_job(database, status="DELETED")
    foreign = await make_job(database, tenant_id=await make_tenant(database))
    for job_id in (deleted.job_id, foreign.job_id, JobId(uuid4())):
        with pytest.raises(JobNotFound) as refusal:
            await enqueue(database, request(), [Wanted(fine.job_id), Wanted(job_id)], NOW)
        assert refusal.value.job_id == job_id
    assert await database.fetch_value(COUNT) == 0
    assert await database.fetch_value(sql("select count(*) from foliot.idempotency_keys")) == 0


@pytest.mark.parametrize("status", ["PAUSED", "COMPLETED"])
async def test_a_job_that_fires_nothing_can_be_asked(database: Database, status: str) -> None:
    job = await make_job(database, status=status, next_instant=None, next_run_at=None)
    assert (await one(database, Wanted(job.job_id))).outcome is CREATED


async def test_a_job_cannot_be_deleted_under_a_request(
    database: Database, database_url: str
) -> None:
    """The delete looks for what waits only once the request is done, and then finds it."""
    job = await make_job(database)
    hold = sql("select pg_advisory_xact_lock(20, hashtext('default ' || $1::uuid::text))")
    waiting = sql("select exists (select from pg_locks where not granted)")
    free = sql("select id from foliot.jobs where id = $1 for no key update skip locked")
    async with Database(database_url) as other:
        async with other.transaction() as blocker:
            await blocker.execute(hold, DEFAULT_TENANT)
            sending = asyncio.create_task(enqueue(database, request(), [Wanted(job.job_id)], NOW))
            while not await other.fetch_value(waiting):
                pass
            assert await other.fetch(free, job.job_id) == []
        await sending
        assert len(await other.fetch(free, job.job_id)) == 1


async def test_a_live_execution_with_the_unique_key_is_the_answer(database: Database) -> None:
    job, other = await make_job(database), await make_job(database)
    first = await one(database, Wanted(job.job_id, unique_key="u"))
    again = await one(database, Wanted(job.job_id, unique_key="u"), "r2")
    assert again == Enqueued(first.execution_id, EXISTS, replayed=False)
    assert (await one(database, Wanted(other.job_id, unique_key="u"), "r3")).outcome is CREATED
    await database.execute(sql("delete from foliot.executions"))
    assert (await one(database, Wanted(job.job_id, unique_key="u"), "r4")).outcome is CREATED


async def test_a_unique_key_twice_in_one_request_is_one_execution(database: Database) -> None:
    job = await make_job(database)
    wanted = [Wanted(job.job_id, unique_key=key) for key in ("u", None, "u", "v", None)]
    answers = await enqueue(database, request(), wanted, NOW)
    assert [answer.outcome for answer in answers] == [CREATED, CREATED, EXISTS, CREATED, CREATED]
    assert answers[2].execution_id == answers[0].execution_id
    assert await database.fetch_value(COUNT) == 4


async def test_a_unique_key_asked_for_by_many_at_once_is_one_execution(
    database: Database, database_url: str
) -> None:
    job = await make_job(database)
    wanted = [Wanted(job.job_id, unique_key="u")]
    async with Database(database_url) as other:
        answers = await asyncio.gather(
            *(
                enqueue(node, request(f"r{n}"), wanted, NOW)
                for n, node in enumerate([database, other] * 4)
            )
        )
    assert len({answer.execution_id for (answer,) in answers}) == 1
    assert [answer.outcome for (answer,) in answers].count(CREATED) == 1


async def test_what_is_under_a_limit_waits_for_a_slot(database: Database) -> None:
    job = await make_job(database, limit_keys=["queue:default", "key:old"])
    await database.execute(sql("insert into foliot.limits values ('queue:default', 9)"))
    own = key_limit(DEFAULT_TENANT, "k", 2)
    later = NOW + HOUR
    await enqueue(
        database,
        request(),
        [
            Wanted(job.job_id, concurrency=own),
            Wanted(job.job_id),
            Wanted(job.job_id, concurrency=own, run_at=later),
        ],
        NOW,
    )
    key = f"key:{DEFAULT_TENANT}:k"
    rows = await database.fetch(
        sql(
            "select status, hold, rank, limit_keys from foliot.executions"
            " order by available_at, cardinality(limit_keys) desc"
        )
    )
    assert [tuple(row) for row in rows] == [
        ("WAITING", "LIMIT", None, ["queue:default", key]),
        ("WAITING", "LIMIT", None, ["queue:default"]),  # the other key has no limit
        ("PENDING", None, None, ["queue:default", key]),
    ]
    limit = sql("select max_running from foliot.limits where key = $1")
    assert await database.fetch_value(limit, key) == 2


async def test_ten_thousand_at_once_are_ranked_in_their_order(database: Database) -> None:
    job = await make_job(database)
    wanted = [Wanted(job.job_id, payload=n) for n in range(10_000)]
    answers = await enqueue(database, request(), wanted)
    ranked = await database.fetch(sql("select payload from foliot.executions order by rank"))
    assert [row["payload"] for row in ranked] == list(range(10_000))
    assert len({answer.execution_id for answer in answers}) == 10_000
    assert all(answer.replayed for answer in await enqueue(database, request(), wanted))
    with pytest.raises(InvalidInput, match="10001"):
        await enqueue(database, request(), [*wanted, wanted[0]])


@pytest.mark.parametrize(
    "changes",
    [
        {"payload": float("nan")},
        {"payload": "\0"},
        {"unique_key": "\ud800"},
        {"trace_id": "\0"},
        {"labels": {"a": "\0"}},
        {"delay_seconds": -1.0},
        {"delay_seconds": float("inf")},
        {"run_at": NOW, "delay_seconds": 1.0},
    ],
)
async def test_what_cannot_be_kept_is_refused_by_name(
    database: Database, changes: dict[str, object]
) -> None:
    job = await make_job(database)
    with pytest.raises(InvalidInput) as refusal:
        await enqueue(database, request(), [Wanted(job.job_id, **changes)], NOW)  # type: ignore[arg-type]
    assert str(refusal.value).partition(":")[0].partition(".")[0] in changes


def hours(*numbers: int) -> list[datetime]:
    return [NOW + n * HOUR for n in numbers]


async def test_a_backfill_fills_only_instants_without_an_execution(database: Database) -> None:
    job = await make_job(database, last_instant=NOW - HOUR, next_instant=NOW)
    live = await make_execution(database, job, scheduled_time=NOW - HOUR)
    over = await make_execution(database, job, scheduled_time=NOW - 2 * HOUR)
    await database.execute(
        sql(
            "with gone as (delete from foliot.executions e where id = $1 returning e as row)"
            " insert into foliot.attempts select a.* from gone g cross join lateral"
            " foliot.as_attempt(g.row, 'FAILED', true, $2, null, null, false, null, null) a"
        ),
        over.execution_id,
        NOW,
    )
    answers = await backfill(database, request(), job.job_id, hours(-4, -3, -2, -1, 0, 1), now=NOW)
    assert [answer.outcome for answer in answers] == [
        CREATED, CREATED, FILLED, FILLED, UNSETTLED, UNSETTLED,
    ]  # fmt: skip
    assert answers[2].execution_id == over.execution_id
    assert answers[3].execution_id == live.execution_id
    made = await database.fetch(sql("select * from foliot.executions where trigger = 'BACKFILL'"))
    assert {row["scheduled_time"] for row in made} == set(hours(-4, -3))
    assert {row["available_at"] for row in made} == {NOW}
    assert {row["id"] for row in made}.isdisjoint(
        scheduled_execution(job.job_id, instant) for instant in hours(-4, -3)
    )


async def test_a_second_backfill_finds_the_first_one(database: Database) -> None:
    job = await make_job(database)
    (first,) = await backfill(database, request("a"), job.job_id, hours(-3), now=NOW)
    local = [instant.astimezone() for instant in hours(-3)]
    (second,) = await backfill(database, request("b"), job.job_id, local, now=NOW)
    assert (second.outcome, second.execution_id) == (FILLED, first.execution_id)


async def test_a_rerun_runs_every_instant_under_ids_of_its_own(database: Database) -> None:
    job = await make_job(database)
    await make_execution(database, job, scheduled_time=NOW - HOUR)
    first = await backfill(database, request("a"), job.job_id, hours(-2, -1), rerun=True, now=NOW)
    second = await backfill(database, request("b"), job.job_id, hours(-2, -1), rerun=True, now=NOW)
    assert {answer.outcome for answer in first + second} == {CREATED}
    assert await database.fetch_value(COUNT) == 5
    (third,) = await backfill(database, request("c"), job.job_id, hours(-2), now=NOW)
    assert (third.outcome, third.execution_id) == (FILLED, first[0].execution_id)


async def test_instants_that_a_pause_holds_are_left_to_the_schedule(database: Database) -> None:
    job = await make_job(
        database, status="PAUSED", next_instant=None, next_run_at=None, last_instant=NOW - 2 * HOUR
    )
    answers = await backfill(database, request(), job.job_id, hours(-3, -1), now=NOW)
    assert [answer.outcome for answer in answers] == [CREATED, UNSETTLED]


async def test_the_database_says_when_it_is_available(database: Database) -> None:
    job = await make_job(database)
    await make_worker(database)
    wrong = request(seen_at=datetime(2001, 1, 1, tzinfo=UTC))
    await enqueue(database, wrong, [Wanted(job.job_id)])
    late = sql(
        "select statement_timestamp() - available_at < interval '1 min' from foliot.executions"
    )
    assert await database.fetch_value(late)


async def test_of_two_limits_for_one_key_the_lower_counts_each_time(database: Database) -> None:
    job = await make_job(database)
    wanted = [
        Wanted(job.job_id, concurrency=key_limit(DEFAULT_TENANT, "k", most)) for most in (1, 2)
    ]
    for number in range(3):
        await enqueue(database, Request(DEFAULT_TENANT, "bulk", f"r{number}", NOW), wanted, NOW)
        assert await database.fetch_value(sql("select max_running from foliot.limits")) == 1
