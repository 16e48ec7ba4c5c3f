"""`/v1/dead-letters` over HTTP: what is shown, what is done, and what is refused."""

import asyncio
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
import pytest_asyncio

from foliot.core.model import ErrorType, Failure
from foliot.core.retry import DeadLetterReason
from foliot.core.states import ExecutionEvent
from foliot.store.database import Database
from foliot.testing.database import sql
from foliot.testing.hand import Hand, lend_hand
from foliot.testing.proxy import NodeProxy
from foliot.testing.rows import make_tenant
from foliot.testing.web import Answer, Client, client_of

PLACE = "/v1/dead-letters"
UNKNOWN = "0191f000-0000-8000-8000-000000000001"
BROKEN = Failure(ErrorType.HANDLER_ERROR, "order 17 broke")
SLOW = Failure(ErrorType.TIMEOUT, "no answer")
PAYLOADS = sql("select payload::text from foliot.executions where id = $1")


@dataclass(frozen=True)
class Desk:
    """The API, and a worker whose hand a test leads."""

    client: Client
    worker: Hand

    async def make_job(self, **fields: Any) -> str:  # noqa: ANN401 - any field of a job
        made = await self.client.post("/v1/jobs", {"name": "report", **fields})
        assert made.status == 201, made.body
        return str(made.body["job_id"])

    async def enqueue(self, **fields: Any) -> str:  # noqa: ANN401 - any field of an enqueue
        made = await self.client.post("/v1/executions", {"job": "report", **fields})
        assert made.status == 202, made.body
        return str(made.body["execution_id"])

    async def fail(self, failure: Failure = BROKEN, **fields: Any) -> str:  # noqa: ANN401
        """An execution that has failed for good."""
        execution = await self.enqueue(**fields)
        await self.worker.finish(
            await self.worker.claim(),
            ExecutionEvent.FAIL,
            failure=failure,
            dead_letter=DeadLetterReason.EXHAUSTED,
        )
        return execution

    async def items(self, path: str = PLACE, **query: object) -> list[dict[str, Any]]:
        answer = await self.client.get(path, **query)
        assert answer.status == 200, answer.body
        found: list[dict[str, Any]] = answer.body["items"]
        return found

    async def replay(self, letter: str, body: object = None, **headers: str) -> Answer:
        return await self.client.post(f"{PLACE}/{letter}/replay", body, **headers)


@pytest_asyncio.fixture
async def desk(database: Database) -> Desk:
    return Desk(client_of(database), await lend_hand(database))


async def test_a_letter_is_listed_and_read_with_its_errors(desk: Desk) -> None:
    job = await desk.make_job()
    execution = await desk.enqueue(payload={"n": 1})
    await desk.worker.finish(await desk.worker.claim(), ExecutionEvent.RETRY, failure=SLOW)
    await desk.worker.database.execute(
        sql("update foliot.executions set status = 'QUEUED', rank = 1, queued_at = available_at")
    )
    await desk.worker.finish(
        await desk.worker.claim(),
        ExecutionEvent.FAIL,
        failure=BROKEN,
        dead_letter=DeadLetterReason.EXHAUSTED,
    )
    (shown,) = await desk.items()
    assert {name: shown[name] for name in ("id", "execution_id", "job_id", "job_name")} == {
        "id": execution,
        "execution_id": execution,
        "job_id": job,
        "job_name": "report",
    }
    assert (shown["status"], shown["reason"], shown["total_attempts"]) == ("OPEN", "EXHAUSTED", 2)
    assert (shown["payload"], shown["payload_omitted"]) == ({"n": 1}, False)
    assert [error["message"] for error in shown["errors"]] == ["order 17 broke"]
    whole = (await desk.client.get(f"{PLACE}/{execution}")).body
    assert whole == shown | {"errors": whole["errors"]}
    first, last = whole["errors"]
    assert (first["attempt_number"], first["type"], first["message"]) == (1, "TIMEOUT", "no answer")
    assert last.keys() == {
        *("attempt_number", "finished_at", "type", "message", "http_status", "detail"),
    }
    assert last["finished_at"] == whole["failed_at"]


async def test_without_history_the_last_error_is_still_there(desk: Desk) -> None:
    await desk.make_job()
    letter = await desk.fail()
    await desk.worker.database.execute(sql("delete from foliot.attempts"))
    (error,) = (await desk.client.get(f"{PLACE}/{letter}")).body["errors"]
    assert (error["attempt_number"], error["message"]) == (1, "order 17 broke")


async def test_lists_have_pages_filters_and_a_count(desk: Desk) -> None:
    job = await desk.make_job()
    made = [await desk.fail() for _ in range(3)]
    slow = await desk.fail(SLOW)
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = (await desk.client.get(PLACE, limit=2, count="true", **cursor)).body
        assert page["total"] == 4
        seen += [each["id"] for each in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert seen == [slow, *made[::-1]]
    assert [each["id"] for each in await desk.items(error="answer")] == [slow]
    assert len(await desk.items(job_id=job, reason="exhausted")) == 4
    assert await desk.items(job_id="nonsense") == []
    assert await desk.items(status="replayed") == []
    elsewhere = await desk.client.get(PLACE, limit=2, error="x", **cursor)
    assert elsewhere.code == (400, "INVALID_CURSOR")


@pytest.mark.parametrize(
    ("query", "field"),
    [({"status": "gone"}, "status"), ({"reason": "x"}, "reason"), ({"page": 2}, "page")],
)
async def test_what_is_no_filter_is_refused_by_name(
    desk: Desk, query: dict[str, object], field: str
) -> None:
    refused = await desk.client.get(PLACE, **query)
    assert refused.code == (400, "VALIDATION_ERROR")
    assert refused.error["details"][0]["field"].startswith(field)


async def test_groups_have_a_number_their_span_and_a_sample(desk: Desk) -> None:
    await desk.make_job()
    await desk.fail()
    last = await desk.fail(Failure(ErrorType.HANDLER_ERROR, "order 18 broke"))
    slow = await desk.fail(SLOW)
    groups = await desk.items(f"{PLACE}/groups", count="true")
    assert [(group["count"], group["sample"]["id"]) for group in groups] == [(1, slow), (2, last)]
    assert groups[1]["first_failed_at"] < groups[1]["last_failed_at"]
    assert groups[1]["sample"]["error"]["message"] == "order 18 broke"
    first = (await desk.client.get(f"{PLACE}/groups", limit=1)).body
    rest = await desk.items(f"{PLACE}/groups", limit=1, cursor=first["next_cursor"])
    assert [*first["items"], *rest] == groups
    of_one = await desk.items(fingerprint=groups[1]["fingerprint"])
    assert len(of_one) == 2


async def test_a_replay_is_answered_with_its_execution(desk: Desk) -> None:
    await desk.make_job()
    letter = await desk.fail(labels={"a": "b"})
    made = await desk.replay(letter)
    assert (made.status, made.body["trigger"], made.body["retry_of"]) == (202, "REPLAY", letter)
    assert made.headers["location"] == f"/v1/executions/{made.body['execution_id']}"
    assert (made.body["status"], made.body["idempotency_key"]) == ("QUEUED", letter)
    assert made.body["labels"] == {"a": "b"}
    old = (await desk.client.get(f"/v1/executions/{letter}")).body
    assert made.body["scheduled_time"] == old["scheduled_time"]
    again = await desk.replay(letter, {"payload_override": {"other": 1}})
    assert (again.status, again.body["execution_id"]) == (200, made.body["execution_id"])
    assert await desk.items() == []
    (closed,) = await desk.items(status="REPLAYED")
    assert closed["replayed_as"] == made.body["execution_id"]
    await desk.worker.finish(await desk.worker.claim(), ExecutionEvent.SUCCEED)
    over = await desk.replay(letter)
    assert (over.status, over.body["status"]) == (200, "SUCCEEDED")


async def test_a_payload_can_be_put_in_its_place(desk: Desk, database: Database) -> None:
    await desk.make_job(payload={"job": 1})
    one, two, three = [await desk.fail() for _ in range(2)] + [await desk.fail(payload=7)]
    bodies = {one: None, two: {"payload_override": None}, three: {}}
    kept = []
    for letter, body in bodies.items():
        made = (await desk.replay(letter, body)).body["execution_id"]
        kept.append(await database.fetch_value(PAYLOADS, made))
    assert kept == [None, "null", "7"]


async def test_twenty_at_once_make_one(desk: Desk) -> None:
    await desk.make_job()
    letter = await desk.fail()
    answers = await asyncio.gather(*(desk.replay(letter) for _ in range(20)))
    assert sorted(answer.status for answer in answers) == [200] * 19 + [202]
    assert len({answer.body["execution_id"] for answer in answers}) == 1
    assert len(await desk.items("/v1/executions")) == 2


@pytest.mark.parametrize("key", [{}, {"idempotency_key": "k"}], ids=["without a key", "with one"])
async def test_a_lost_answer_costs_nothing(
    desk: Desk, database_url: str, key: dict[str, str]
) -> None:
    """It was made, and the connection lost while it was read for the answer."""
    await desk.make_job()
    letter = await desk.fail()
    async with NodeProxy(database_url) as proxy, Database(proxy.url) as far:
        there = Desk(client_of(far), desk.worker)
        proxy.cut_at(b"as dead_letter_id", deliver=False)
        lost = await there.replay(letter, **key)
        assert lost.code == (503, "SCHEDULER_UNAVAILABLE")
        again = await there.replay(letter, **key)
    assert again.status in (200, 202)
    assert len(await desk.items("/v1/executions")) == 2


async def test_a_letter_of_a_deleted_job_cannot_be_replayed(desk: Desk) -> None:
    job = await desk.make_job()
    letter = await desk.fail()
    await desk.client.delete(f"/v1/jobs/{job}")
    assert (await desk.replay(letter)).code == (404, "JOB_NOT_FOUND")
    assert [each["id"] for each in await desk.items()] == [letter]
    everything = await desk.client.post(f"{PLACE}/replay", {"filter": {}})
    assert (everything.status, everything.body["replayed"], everything.body["refused"]) == (
        202,
        0,
        1,
    )
    assert everything.body["refusals"][0]["code"] == "JOB_NOT_FOUND"


async def test_a_letter_is_discarded_with_a_reason(desk: Desk) -> None:
    await desk.make_job()
    letter = await desk.fail()
    missing = await desk.client.delete(f"{PLACE}/{letter}")
    assert missing.code == (400, "VALIDATION_ERROR")
    assert missing.error["details"][0]["field"] == "reason"
    gone = await desk.client.delete(f"{PLACE}/{letter}?reason=nobody+needs+it")
    assert (gone.status, gone.body["status"]) == (200, "DISCARDED")
    assert gone.body["discard_reason"] == "nobody needs it"
    again = await desk.client.delete(f"{PLACE}/{letter}?reason=other")
    assert again.body == gone.body
    assert await desk.items() == []
    assert (await desk.replay(letter)).code == (409, "DEAD_LETTER_CLOSED")
    assert (await desk.client.get(f"{PLACE}/{letter}")).body == gone.body
    other = await desk.fail()
    await desk.replay(other)
    late = await desk.client.delete(f"{PLACE}/{other}?reason=late")
    assert late.code == (409, "DEAD_LETTER_CLOSED")


async def test_all_that_fit_are_replayed_at_a_rate(desk: Desk, database: Database) -> None:
    await desk.make_job()
    made = [await desk.fail() for _ in range(5)]
    slow = await desk.fail(SLOW)
    body = {"filter": {"error": "broke"}, "rate": 2, "delay_seconds": 60, "limit": 4}
    tried = await desk.client.post(f"{PLACE}/replay", body | {"dry_run": True})
    assert (tried.status, tried.body["replayed"], tried.body["more"]) == (200, 4, True)
    answer = await desk.client.post(f"{PLACE}/replay", body)
    assert (answer.status, answer.body) == (
        202,
        {
            "replayed": 4,
            "refused": 0,
            "refusals": [],
            "more": True,
            "last_delay_seconds": 61.5,
        },
    )
    rows = await database.fetch(
        sql("select retry_of, available_at from foliot.executions order by available_at")
    )
    assert [str(row["retry_of"]) for row in rows] == made[:4], "the oldest first"
    gaps = [
        (second["available_at"] - first["available_at"]).total_seconds()
        for first, second in pairwise(rows)
    ]
    assert gaps == [0.5, 0.5, 0.5]
    rest = await desk.client.post(f"{PLACE}/replay", body | {"rate": None})
    assert (rest.body["replayed"], rest.body["more"]) == (1, False)
    assert [each["id"] for each in await desk.items()] == [slow]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "filter"),
        ({"filter": {}, "rate": 0}, "rate"),
        ({"filter": {}, "limit": 10_001}, "limit"),
        ({"filter": {"fingerprnt": "x"}}, "filter.fingerprnt"),
        ({"filter": {"from": "yesterday"}}, "filter.from"),
    ],
)
async def test_a_replay_of_many_names_what_is_wrong(
    desk: Desk, body: dict[str, object], field: str
) -> None:
    refused = await desk.client.post(f"{PLACE}/replay", body)
    assert refused.code == (400, "VALIDATION_ERROR")
    assert refused.error["details"][0]["field"] == field


@pytest.mark.parametrize("what", ["nonsense", UNKNOWN])
async def test_an_unknown_letter_is_unknown(desk: Desk, what: str) -> None:
    expected = (404, "DEAD_LETTER_NOT_FOUND")
    assert (await desk.client.get(f"{PLACE}/{what}")).code == expected
    assert (await desk.replay(what)).code == expected
    assert (await desk.client.delete(f"{PLACE}/{what}?reason=x")).code == expected


async def test_anothers_letter_is_unknown(desk: Desk, database: Database) -> None:
    await desk.make_job()
    letter = await desk.fail()
    tenant = str(await make_tenant(database))
    theirs = Desk(
        Client(desk.client.app, {**desk.client.headers, "x-tenant-id": tenant}), desk.worker
    )
    expected = (404, "DEAD_LETTER_NOT_FOUND")
    assert (await theirs.client.get(f"{PLACE}/{letter}")).code == expected
    assert (await theirs.replay(letter)).code == expected
    assert (await theirs.client.delete(f"{PLACE}/{letter}?reason=x")).code == expected
    assert await theirs.items() == []
    assert await theirs.items(f"{PLACE}/groups") == []
    nothing = await theirs.client.post(f"{PLACE}/replay", {"filter": {}})
    assert nothing.body["replayed"] == 0
    retried = await theirs.client.post(f"/v1/executions/{letter}/retry")
    assert retried.code == (404, "EXECUTION_NOT_FOUND")
    assert [each["id"] for each in await desk.items()] == [letter]


async def test_a_retry_runs_what_is_over_once_more(desk: Desk) -> None:
    await desk.make_job()
    done = await desk.enqueue(payload={"n": 1})
    path = f"/v1/executions/{done}/retry"
    running = await desk.client.post(path)
    assert running.code == (409, "RUN_NOT_FINISHED")
    await desk.worker.finish(await desk.worker.claim(), ExecutionEvent.SUCCEED)
    first = await desk.client.post(path, idempotency_key="k")
    assert (first.status, first.body["trigger"], first.body["retry_of"]) == (202, "RETRY", done)
    assert first.body["idempotency_key"] == first.body["execution_id"], "the old one is used"
    assert (await desk.client.post(path, idempotency_key="k")).body == first.body
    second = await desk.client.post(path, {"payload_override": 2})
    assert second.body["execution_id"] != first.body["execution_id"]


async def test_a_retry_of_what_is_cancelled_keeps_its_idempotency_key(desk: Desk) -> None:
    await desk.make_job()
    gone = await desk.enqueue(delay_seconds=60)
    await desk.client.post(f"/v1/executions/{gone}/cancel")
    made = await desk.client.post(f"/v1/executions/{gone}/retry")
    assert (made.status, made.body["idempotency_key"]) == (202, gone)


async def test_a_retry_of_a_dead_letter_is_its_replay(desk: Desk) -> None:
    await desk.make_job()
    letter = await desk.fail()
    made = await desk.client.post(f"/v1/executions/{letter}/retry")
    assert (made.status, made.body["trigger"]) == (202, "RETRY")
    again = await desk.replay(letter)
    assert (again.status, again.body["execution_id"]) == (200, made.body["execution_id"])
    unknown = await desk.client.post(f"/v1/executions/{UNKNOWN}/retry")
    assert unknown.code == (404, "EXECUTION_NOT_FOUND")
