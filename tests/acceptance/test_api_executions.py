"""`/v1/executions`: asked for, followed from the queue into history, cancelled."""

from typing import Any
from uuid import uuid4

import pytest

from foliot.store.database import Database
from foliot.testing.database import sql
from foliot.testing.web import Client, client_of

CONTRACT = {
    "execution_id",
    "tenant_id",
    "job_id",
    "job_name",
    "job_version",
    "status",
    "attempt_number",
    "max_attempts",
    "fence",
    "scheduled_time",
    "available_at",
    "queued_at",
    "started_at",
    "finished_at",
    "duration_ms",
    "trigger",
    "priority",
    "queue",
    "worker_id",
    "labels",
    "tags",
    "idempotency_key",
    "trace_id",
    "retry_of",
    "cancel_requested_at",
    "dead_letter_id",
    "dag_run_id",
    "skip_reason",
    "progress",
    "result",
    "result_truncated",
    "response",
    "error",
    "attempts",
}
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.fixture
def client(database: Database) -> Client:
    return client_of(database)


async def create(client: Client, name: str = "mail", **changes: object) -> dict[str, Any]:
    made = await client.post("/v1/jobs", {"name": name, "tags": ["post"], **changes})
    assert made.status == 201, made.body
    body: dict[str, Any] = made.body
    return body


async def enqueue(client: Client, **body: object) -> dict[str, Any]:
    made = await client.post("/v1/executions", {"job": "mail", **body})
    assert made.status == 202, made.body
    accepted: dict[str, Any] = made.body
    return accepted


async def test_an_accepted_execution_has_every_field_and_an_address(client: Client) -> None:
    job = await create(client)
    traceparent = f"00-{TRACE}-00f067aa0ba902b7-01"
    made = await client.post(
        "/v1/executions", {"job": "mail", "labels": {"a": "b"}}, traceparent=traceparent
    )
    assert made.status == 202
    assert made.body.keys() == CONTRACT
    assert made.headers["location"] == f"/v1/executions/{made.body['execution_id']}"
    expected = {
        "job_id": job["job_id"],
        "job_name": "mail",
        "status": "QUEUED",
        "trigger": "ENQUEUE",
        "priority": 5,
        "max_attempts": 4,
        "labels": {"a": "b"},
        "tags": ["post"],
        "trace_id": TRACE,
        "idempotency_key": made.body["execution_id"],
        "attempts": [],
    }
    assert {name: made.body[name] for name in expected} == expected
    assert (await client.get(made.headers["location"])).body == made.body


async def test_a_job_may_be_named_or_given_by_its_id(client: Client) -> None:
    job = await create(client)
    assert (await enqueue(client))["job_id"] == job["job_id"]
    assert (await enqueue(client, job=job["job_id"]))["job_id"] == job["job_id"]
    for unknown in ("nobody", str(uuid4())):
        refused = await client.post("/v1/executions", {"job": unknown})
        assert refused.code == (404, "JOB_NOT_FOUND")


async def test_a_delay_makes_it_pending_until_then(client: Client) -> None:
    await create(client)
    assert (await enqueue(client, delay_seconds=0.5))["status"] == "PENDING"
    later = await enqueue(client, run_at="2100-01-01T00:00:00Z", priority="high")
    assert (later["scheduled_time"], later["priority"]) == ("2100-01-01T00:00:00Z", 3)


NONSENSE: list[dict[str, Any]] = [
    {},
    {"job": 7},
    {"job": "mail", "delay_seconds": -1},
    {"job": "mail", "delay_seconds": 1, "run_at": "2100-01-01T00:00:00Z"},
    {"job": "mail", "run_at": "soon"},
    {"job": "mail", "run_at": "0001-01-01T00:00:00Z"},
    {"job": "mail", "run_at": "9999-12-31T23:59:59Z"},
    {"job": "mail", "priority": 0},
    {"job": "mail", "labels": {"a": 1}},
    {"job": "mail", "unique_key": ""},
    {"job": "mail", "unique_key": "a\0"},
    {"job": "mail", "concurrency_key": "a"},
    {"job": "mail", "payload": {"a": "\0"}},
    {"job": "mail", "payloads": {}},
    {"job": "mail", "idempotency_key": 5},
    {"job": "mail", "idempotency_key": "x" * 300},
]


async def test_a_request_that_makes_no_sense_is_refused(client: Client) -> None:
    await create(client)
    for body in NONSENSE:
        refused = await client.post("/v1/executions", body)
        assert refused.code == (400, "VALIDATION_ERROR"), body
    assert (await client.get("/v1/executions")).body["items"] == []


async def test_a_payload_that_is_too_large_is_a_413(client: Client) -> None:
    await create(client)
    body = {"job": "mail", "payload": "x" * 1_100_000}
    assert (await client.post("/v1/executions", body)).code == (413, "PAYLOAD_TOO_LARGE")


async def test_a_unique_key_is_live_once(client: Client) -> None:
    await create(client)
    first = await enqueue(client, unique_key="order-7")
    again = await client.post("/v1/executions", {"job": "mail", "unique_key": "order-7"})
    assert (again.status, again.body["execution_id"]) == (200, first["execution_id"])


async def test_null_is_a_payload_and_nothing_is_the_jobs_own(
    client: Client, database: Database
) -> None:
    await create(client, payload={"a": 1})
    absent = await enqueue(client)
    null = await enqueue(client, payload=None)
    rows = await database.fetch(sql("select id, payload is null as own from foliot.executions"))
    assert {str(row["id"]): row["own"] for row in rows} == {
        absent["execution_id"]: True,
        null["execution_id"]: False,
    }


async def test_a_concurrency_key_is_filled_from_the_payload_of_each(
    client: Client, database: Database
) -> None:
    await create(
        client, concurrency={"key": "user-${payload.user}", "limit": 1}, payload={"user": 0}
    )
    for body in ({}, {"payload": {"user": 7}}, {"concurrency_key": "own"}):
        assert (await enqueue(client, **body))["status"] == "WAITING"
    rows = await database.fetch(sql("select limit_keys[1] as key from foliot.executions"))
    keys = sorted(row["key"].rpartition(":")[2] for row in rows)
    assert keys == ["own", "user-0", "user-7"]
    refused = await client.post("/v1/executions", {"job": "mail", "payload": {}})
    assert refused.code == (400, "VALIDATION_ERROR")


async def test_a_bulk_is_all_or_nothing_and_in_order(client: Client) -> None:
    await create(client)
    await create(client, "other")
    bulk = [{"job": name, "unique_key": "k"} for name in ("mail", "other", "mail")]
    made = await client.post("/v1/executions/bulk", {"executions": bulk})
    assert made.status == 202
    ids = [item["execution_id"] for item in made.body["items"]]
    assert ids[0] == ids[2] != ids[1]
    assert [item["created"] for item in made.body["items"]] == [True, True, False]
    refused: list[dict[str, object]] = [
        {"executions": [*bulk, {"job": "nobody"}]},
        {"executions": []},
        {"executions": [{"job": "mail"}] * 10_001},
        {"executions": [{"jab": "mail"}]},
        {"items": bulk},
    ]
    for broken in refused:
        assert (await client.post("/v1/executions/bulk", broken)).status in (400, 404)
    assert len((await client.get("/v1/executions")).body["items"]) == 2


@pytest.mark.parametrize(
    ("broken", "status", "field"),
    [
        ({"payload": {"a": "\0"}}, 400, "payload.a"),
        ({"payload": "x" * 1_100_000}, 413, "payload"),
        ({"delay_seconds": 1, "run_at": "2100-01-01T00:00:00Z"}, 400, "delay_seconds"),
        ({"concurrency_key": "a"}, 400, "concurrency_key"),
        ({"job": "by user", "payload": {}}, 400, "concurrency.key"),
        ({"priority": 0}, 400, "priority"),
    ],
)
async def test_a_refused_bulk_says_which_one_is_wrong(
    client: Client, broken: dict[str, Any], status: int, field: str
) -> None:
    await create(client)
    await create(client, "by user", concurrency={"key": "${payload.user}", "limit": 1})
    item = {"job": "mail"} | broken
    for place in (0, 2):
        bulk = [{"job": "mail"}] * place + [item]
        refused = await client.post("/v1/executions/bulk", {"executions": bulk})
        told = f"executions[{place}].{field}"
        assert (refused.status, refused.error["details"][0]["field"]) == (status, told)
        assert refused.error["message"].startswith(f"{told}: ")
    alone = await client.post("/v1/executions", item)
    assert (alone.status, alone.error["details"][0]["field"]) == (status, field)
