"""A request that is sent twice is carried out once, and both are told the same."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from foliot.core.states import ExecutionEvent
from foliot.store.claiming import ClaimRequest, claim
from foliot.store.database import Database
from foliot.store.finishing import Outcome, finish
from foliot.store.request_keys import ABANDONED_SECONDS
from foliot.testing.database import sql
from foliot.testing.proxy import NodeProxy
from foliot.testing.rows import make_tenant, make_worker
from foliot.testing.web import KEY, Client, client_of

JOB = {"name": "report", "schedule": "0 9 * * *"}
AGE = sql("update foliot.idempotency_keys set created_at = created_at - $1::interval")
FORGET_ANSWERS = sql("update foliot.idempotency_keys set answer = null where route like 'POST %'")


@pytest.fixture
def client(database: Database) -> Client:
    return client_of(database)


@pytest.mark.parametrize("header", ["idempotency_key", "x_idempotency_key", None])
async def test_the_second_is_told_what_the_first_was(client: Client, header: str | None) -> None:
    headers = {header: "k-1"} if header else {}
    body = JOB if header else JOB | {"idempotency_key": "k-1"}
    first = await client.post("/v1/jobs", body, **headers)
    assert (first.status, first.headers.get("idempotency-replayed")) == (201, None)
    again = await client.post("/v1/jobs", body, **headers)
    assert (again.status, again.headers["idempotency-replayed"]) == (201, "true")
    assert again.body == first.body
    for name in ("etag", "location"):
        assert again.headers[name] == first.headers[name]
    assert len((await client.get("/v1/jobs")).body["items"]) == 1


async def test_a_key_in_the_header_and_in_the_body_are_one(client: Client) -> None:
    first = await client.post("/v1/jobs", JOB, idempotency_key="k")
    again = await client.post("/v1/jobs", JOB | {"idempotency_key": "k"})
    assert again.body == first.body
    both = await client.post("/v1/jobs", JOB | {"idempotency_key": "k"}, idempotency_key="k")
    assert both.body == first.body
    torn = await client.post("/v1/jobs", JOB | {"idempotency_key": "k"}, idempotency_key="l")
    assert torn.code == (400, "VALIDATION_ERROR")


async def test_an_answer_is_kept_as_it_was_whatever_came_after(
    client: Client, database: Database
) -> None:
    await client.post("/v1/jobs", JOB)
    body = {"job": "report"}
    first = await client.post("/v1/executions", body, idempotency_key="k")
    worker = await make_worker(database)
    lanes = [row["id"] for row in await database.fetch(sql("select id from foliot.lanes"))]
    (held,) = await claim(database, ClaimRequest(worker, "default", lanes, 1))
    end = Outcome(held.execution_id, held.fence, ExecutionEvent.SUCCEED)
    await finish(database, worker, [end])
    again = await client.post("/v1/executions", body, idempotency_key="k")
    assert (again.status, again.body["status"]) == (202, "QUEUED")
    assert again.body == first.body


@pytest.mark.parametrize(
    "other", [JOB | {"priority": 1}, JOB | {"name": "other"}, JOB | {"payload": 0}]
)
async def test_one_key_cannot_be_two_requests(client: Client, other: dict[str, Any]) -> None:
    await client.post("/v1/jobs", JOB, idempotency_key="k")
    refused = await client.post("/v1/jobs", other, idempotency_key="k")
    assert refused.code == (422, "IDEMPOTENCY_KEY_REUSED")


async def test_a_key_belongs_to_one_path_and_one_tenant(client: Client, database: Database) -> None:
    job = (await client.post("/v1/jobs", JOB, idempotency_key="k")).body["job_id"]
    triggered = await client.post(f"/v1/jobs/{job}/trigger", idempotency_key="k")
    assert triggered.status == 202
    enqueued = await client.post("/v1/executions", {"job": "report"}, idempotency_key="k")
    assert enqueued.status == 202
    assert enqueued.body["execution_id"] != triggered.body["execution_id"]
    tenant = str(await make_tenant(database))
    other = Client(client.app, {"authorization": f"Bearer {KEY}", "x-tenant-id": tenant})
    assert (await other.post("/v1/jobs", JOB, idempotency_key="k")).status == 201


async def test_a_refused_request_leaves_its_key_free(client: Client) -> None:
    refused = await client.post("/v1/executions", {"job": "report"}, idempotency_key="k")
    assert refused.code == (404, "JOB_NOT_FOUND")
    await client.post("/v1/jobs", JOB)
    for _ in range(2):
        made = await client.post("/v1/executions", {"job": "report"}, idempotency_key="k")
        assert made.status == 202
    assert len((await client.get("/v1/executions")).body["items"]) == 1


async def test_a_request_that_is_still_at_work_is_not_done_twice(
    client: Client, database: Database
) -> None:
    """The first one waits for the job, which somebody else holds."""
    job = (await client.post("/v1/jobs", JOB)).body["job_id"]
    path = f"/v1/jobs/{job}/trigger"
    async with database.transaction() as session:
        await session.execute(sql("select from foliot.jobs where id = $1 for update"), job)
        first = asyncio.create_task(client.post(path, idempotency_key="k"))
        begun = sql("select count(*) from foliot.idempotency_keys where answer is null")
        while not await database.fetch_value(begun):
            assert not first.done()
        second = await client.post(path, idempotency_key="k")
        assert second.code == (409, "IDEMPOTENCY_IN_FLIGHT")
    assert (await first).status == 202
    third = await client.post(path, idempotency_key="k")
    assert third.body == (await first).body


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/executions", "/v1/executions/bulk"])
async def test_after_a_node_died_at_work_the_same_is_made_and_not_another(
    client: Client, database: Database, path: str
) -> None:
    """Its work was done, and its answer never written: the next copy does it again."""
    bodies: dict[str, Any] = {
        "/v1/jobs": JOB,
        "/v1/executions": {"job": "other"},
        "/v1/executions/bulk": {"executions": [{"job": "other"}] * 3},
    }
    await client.post("/v1/jobs", {"name": "other"})
    first = await client.post(path, bodies[path], idempotency_key="k")
    if path == "/v1/jobs":
        await client.delete(f"{path}/{first.body['job_id']}")
    # From here on the key is so old that nobody can be at work on it.
    await database.execute(AGE, timedelta(seconds=ABANDONED_SECONDS + 1))
    made = []
    for _ in range(2):
        await database.execute(FORGET_ANSWERS)
        made.append(await client.post(path, bodies[path], idempotency_key="k"))
    assert made[0].status == made[1].status == first.status
    assert made[0].body == made[1].body != first.body
    assert made[1].headers.get("idempotency-replayed") is None


async def test_after_a_day_a_key_is_new(client: Client, database: Database) -> None:
    first = await client.post("/v1/jobs", JOB, idempotency_key="k")
    await database.execute(AGE, timedelta(hours=24))
    await client.delete(f"/v1/jobs/{first.body['job_id']}")
    second = await client.post("/v1/jobs", JOB | {"priority": 1}, idempotency_key="k")
    assert (second.status, second.headers.get("idempotency-replayed")) == (201, None)
    assert second.body["job_id"] != first.body["job_id"]


@pytest.mark.parametrize("key", ["", "x" * 256, "a\tb"])
async def test_a_key_that_cannot_be_kept_is_refused(client: Client, key: str) -> None:
    refused = await client.post("/v1/jobs", JOB, idempotency_key=key)
    assert refused.code == (400, "VALIDATION_ERROR")


# What is read for the answer once the change is made, by words of its own.
READ_FOR_THE_ANSWER = {
    "/v1/jobs": (b"a.finished_at desc limit $3", {"job_type": "mail", "run_at": "2099-01-01"}),
    "/v1/executions": (b"as dead_letter_id", {"job": "other"}),
}


@pytest.mark.parametrize("path", READ_FOR_THE_ANSWER)
async def test_what_was_done_and_could_not_be_told_is_not_done_twice(
    database: Database, database_url: str, path: str
) -> None:
    """The connection is lost after the change, while its answer is read."""
    words, body = READ_FOR_THE_ANSWER[path]
    await client_of(database).post("/v1/jobs", {"name": "other"})
    before = len((await client_of(database).get(path)).body["items"])
    async with NodeProxy(database_url) as proxy, Database(proxy.url) as far:
        client = client_of(far)
        proxy.cut_at(words, deliver=False)
        lost = await client.post(path, body, idempotency_key="k")
        assert lost.code == (503, "SCHEDULER_UNAVAILABLE")
        again = await client.post(path, body, idempotency_key="k")
        assert again.status in (201, 202)
        third = await client.post(path, body, idempotency_key="k")
        assert third.body == again.body
    assert len((await client_of(database).get(path)).body["items"]) == before + 1


@pytest.mark.parametrize("path", READ_FOR_THE_ANSWER)
async def test_nobody_is_told_that_nothing_was_changed_when_it_was(
    database: Database, database_url: str, path: str
) -> None:
    words, body = READ_FOR_THE_ANSWER[path]
    await client_of(database).post("/v1/jobs", {"name": "other"})
    async with NodeProxy(database_url) as proxy, Database(proxy.url) as far:
        proxy.cut_at(words, deliver=False)
        lost = await client_of(far).post(path, body)
    assert lost.status == 503
    assert "was made" in lost.error["message"]
    assert "Idempotency-Key" in lost.error["hint"]
