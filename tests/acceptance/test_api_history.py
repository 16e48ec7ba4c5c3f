"""Executions followed from the queue into history: what they say, how they end, who may look."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest

from foliot.core.model import ErrorType, Failure
from foliot.core.retry import DeadLetterReason
from foliot.core.states import ExecutionEvent
from foliot.store.database import Database
from foliot.store.logs import LogLine, append
from foliot.store.progress import Progress, write_progress
from foliot.store.releasing import release_due
from foliot.testing.hand import Hand, lend_hand
from foliot.testing.rows import make_tenant
from foliot.testing.web import KEY, Answer, Client, client_of


@pytest.fixture
def client(database: Database) -> Client:
    return client_of(database)


@pytest.fixture
async def worker(database: Database) -> Hand:
    return await lend_hand(database)


async def create(client: Client) -> None:
    made = await client.post("/v1/jobs", {"name": "mail"})
    assert made.status == 201, made.body


async def enqueue(client: Client, **body: object) -> dict[str, Any]:
    made = await client.post("/v1/executions", {"job": "mail", **body})
    assert made.status == 202, made.body
    accepted: dict[str, Any] = made.body
    return accepted


async def test_an_execution_is_followed_from_the_queue_into_history(
    client: Client, database: Database, worker: Hand
) -> None:
    await create(client)
    path = f"/v1/executions/{(await enqueue(client))['execution_id']}"
    held = await worker.claim()
    await write_progress(
        database, worker.worker_id, [Progress(held.execution_id, held.fence, 40, "half way")]
    )
    running = (await client.get(path)).body
    assert (running["status"], running["attempt_number"], running["fence"]) == ("RUNNING", 1, 1)
    assert running["progress"] == {"percent": 40, "message": "half way"}
    assert running["worker_id"] == str(worker.worker_id)
    assert [attempt["status"] for attempt in running["attempts"]] == ["RUNNING"]

    failure = Failure(ErrorType.HTTP_ERROR, "said no", 503)
    await worker.finish(held, ExecutionEvent.RETRY, failure=failure)
    waiting = (await client.get(path)).body
    error = {"type": "HTTP_ERROR", "message": "said no", "http_status": 503, "detail": None}
    assert (waiting["status"], waiting["error"]) == ("RETRYING", error)
    assert waiting["progress"] is None

    await release_due(database)
    await worker.finish(await worker.claim(), ExecutionEvent.SUCCEED, result={"sent": 2})
    over = (await client.get(path)).body
    assert over.keys() == running.keys()
    assert (over["status"], over["result"], over["error"]) == ("SUCCEEDED", {"sent": 2}, None)
    assert over["duration_ms"] is not None
    assert [
        (each["attempt_number"], each["fence"], each["status"], each["error"])
        for each in over["attempts"]
    ] == [(1, 1, "FAILED", error), (2, 2, "SUCCEEDED", None)]
    job = (await client.get(f"/v1/jobs/{over['job_id']}")).body
    assert job["stats"]["last_status"] == "SUCCEEDED"
    assert job["last_run_at"] == over["started_at"]


class Hourglass:
    """Time passes only where somebody waits, and in the end something happens."""

    def __init__(self, then: Callable[[], Awaitable[None]], after_seconds: float) -> None:
        self.now = 0.0
        self._then = then
        self._after_seconds = after_seconds

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        before, self.now = self.now, self.now + seconds
        if before < self._after_seconds <= self.now:
            await self._then()


async def test_who_prefers_to_wait_is_answered_once_it_is_over(
    client: Client, database: Database, worker: Hand
) -> None:
    await create(client)
    path = f"/v1/executions/{(await enqueue(client))['execution_id']}"

    async def work() -> None:
        await worker.finish(await worker.claim(), ExecutionEvent.SUCCEED)

    hourglass = Hourglass(work, after_seconds=10)
    waiting = client_of(database, hourglass)
    early = await waiting.send("GET", path, headers={"prefer": "wait=5"})
    assert (early.body["status"], hourglass.now) == ("QUEUED", 5)
    over = await waiting.send("GET", path, headers={"prefer": "respond-async, wait=20"})
    assert (over.body["status"], over.headers["preference-applied"]) == ("SUCCEEDED", "wait=20")
    assert 10 <= hourglass.now < 11
    again = await waiting.send("GET", path, headers={"prefer": "wait=20"})
    assert again.body == over.body
    assert hourglass.now < 11


async def test_nobody_waits_longer_than_a_minute(client: Client, database: Database) -> None:
    await create(client)
    path = f"/v1/executions/{(await enqueue(client))['execution_id']}"

    async def nothing() -> None: ...

    for preference, seconds in (("wait=600", 60), ("wait=x", 0), ("waits=5", 0), ("", 0)):
        hourglass = Hourglass(nothing, 1)
        told = await client_of(database, hourglass).send(
            "GET", path, headers={"prefer": preference}
        )
        assert (told.status, round(hourglass.now, 6)) == (200, seconds)


async def test_a_dead_letter_is_named_by_its_execution(client: Client, worker: Hand) -> None:
    await create(client)
    made = await enqueue(client)
    assert made["dead_letter_id"] is None
    failure = Failure(ErrorType.HANDLER_ERROR, "boom")
    await worker.finish(
        await worker.claim(),
        ExecutionEvent.FAIL,
        failure=failure,
        dead_letter=DeadLetterReason.EXHAUSTED,
    )
    dead = (await client.get(f"/v1/executions/{made['execution_id']}")).body
    assert (dead["status"], dead["dead_letter_id"]) == ("FAILED", made["execution_id"])


async def test_what_waits_is_cancelled_at_once_and_what_runs_is_asked(
    client: Client, worker: Hand
) -> None:
    await create(client)
    waiting = await enqueue(client, delay_seconds=60)
    path = f"/v1/executions/{waiting['execution_id']}"
    cancelled = await client.post(f"{path}/cancel", {"reason": "changed my mind"})
    assert (cancelled.status, cancelled.body["status"]) == (202, "CANCELLED")
    assert cancelled.body["error"]["message"] == "changed my mind"
    assert cancelled.body["attempts"] == []
    assert (await client.post(f"{path}/cancel")).status == 202

    running = await enqueue(client)
    path = f"/v1/executions/{running['execution_id']}"
    held = await worker.claim()
    asked = await client.post(f"{path}/cancel")
    assert (asked.status, asked.body["status"]) == (202, "RUNNING")
    assert asked.body["cancel_requested_at"] is not None
    await worker.finish(held, ExecutionEvent.SUCCEED)
    assert (await client.get(path)).body["status"] == "CANCELLED"

    done = await enqueue(client)
    await worker.finish(await worker.claim(), ExecutionEvent.SUCCEED)
    late = await client.post(f"/v1/executions/{done['execution_id']}/cancel")
    assert late.code == (409, "EXECUTION_FINISHED")


async def test_logs_are_read_in_pages_and_by_level(
    client: Client, database: Database, worker: Hand
) -> None:
    await create(client)
    path = f"/v1/executions/{(await enqueue(client))['execution_id']}/logs"
    assert (await client.get(path)).body == {"items": [], "next_cursor": None}
    held = await worker.claim()
    lines = [
        LogLine(
            held.execution_id, held.fence, 1, seq, datetime.now(UTC), level, "log", f"line {seq}"
        )
        for seq, level in enumerate(["INFO", "ERROR", "DEBUG"], start=1)
    ]
    await append(database, worker.worker_id, lines)
    first = await client.get(path, limit=2)
    assert [line["message"] for line in first.body["items"]] == ["line 1", "line 2"]
    assert first.body["items"][0].keys() == {
        "attempt_number",
        "fence",
        "seq",
        "at",
        "level",
        "source",
        "message",
    }
    rest = await client.get(path, limit=2, cursor=first.body["next_cursor"])
    assert [line["message"] for line in rest.body["items"]] == ["line 3"]
    serious = await client.get(path, level="warning")
    assert [line["message"] for line in serious.body["items"]] == ["line 2"]
    assert (await client.get(path, search="LINE 3")).body["items"][0]["seq"] == 3
    assert (await client.get(path, attempt=2)).body["items"] == []
    assert (await client.get(path, attempt=0)).code == (400, "VALIDATION_ERROR")


async def everything(client: Client, execution_id: str) -> list[Answer]:
    path = f"/v1/executions/{execution_id}"
    return [
        await client.get(path),
        await client.get(f"{path}/logs"),
        await client.post(f"{path}/cancel"),
    ]


async def test_an_execution_of_another_tenant_is_as_unknown_as_one_that_never_was(
    client: Client, database: Database, worker: Hand
) -> None:
    await create(client)
    live = await enqueue(client)
    other = await make_tenant(database)
    stranger = Client(client.app, {"authorization": f"Bearer {KEY}", "x-tenant-id": str(other)})
    unknown = UUID(live["execution_id"]).hex[:-4] + "0000"
    for execution_id in (live["execution_id"], unknown, str(uuid4()), "nonsense"):
        for answer in await everything(stranger, execution_id):
            assert answer.code == (404, "EXECUTION_NOT_FOUND")
    assert (await stranger.get("/v1/executions")).body["items"] == []
    assert (await stranger.post("/v1/executions", {"job": "mail"})).code[0] == 404
    await worker.finish(await worker.claim(), ExecutionEvent.SUCCEED)
    for answer in await everything(stranger, live["execution_id"]):
        assert answer.code == (404, "EXECUTION_NOT_FOUND")
    (own,) = (await client.get("/v1/executions")).body["items"]
    assert own["execution_id"] == live["execution_id"]
