"""`/v1/queues`: listed, limited, paused and resumed; and keys that a payload cannot fill."""

import pytest

from foliot.store.claiming import ClaimRequest, claim
from foliot.store.database import Database
from foliot.testing.database import sql
from foliot.testing.rows import make_worker
from foliot.testing.web import Client, client_of

CONTRACT = {
    "name",
    "status",
    "paused_at",
    "status_note",
    "concurrency_limit",
    "depth",
    "running",
    "oldest_wait_seconds",
}
CRON = {"type": "CRON", "cron_expression": "0 10 * * *"}


@pytest.fixture
def client(database: Database) -> Client:
    return client_of(database)


async def create(client: Client, name: str = "mail", **changes: object) -> str:
    made = await client.post("/v1/jobs", {"name": name, **changes})
    assert made.status == 201, made.body
    return str(made.body["job_id"])


async def test_queues_are_listed_by_name_and_by_pages(client: Client) -> None:
    assert (await client.get("/v1/queues")).body == {"items": [], "next_cursor": None}
    for queue in ("b", "a", "c"):
        await create(client, f"job {queue}", queue=queue)
    await client.post("/v1/executions", {"job": "job a"})
    first = (await client.get("/v1/queues", limit=2)).body
    rest = (await client.get("/v1/queues", limit=2, cursor=first["next_cursor"])).body
    assert [item["name"] for item in first["items"] + rest["items"]] == ["a", "b", "c"]
    assert rest["next_cursor"] is None
    assert set(first["items"][0]) == CONTRACT
    assert [item["depth"] for item in first["items"]] == [1, 0]
    assert (await client.get("/v1/queues", limit=1, count="true")).body["total"] == 3
    one = (await client.get("/v1/queues/a")).body
    assert (one["depth"], one["running"], one["status"]) == (1, 0, "ACTIVE")
    assert one["oldest_wait_seconds"] >= 0
    for cursor in ("x", "WzFd", first["next_cursor"][:-2]):
        refused = await client.get("/v1/queues", cursor=cursor)
        assert refused.code == (400, "INVALID_CURSOR")


async def test_a_limit_is_set_kept_and_taken_away(client: Client) -> None:
    await create(client)
    for limit in (3, 1, None):
        answer = await client.patch("/v1/queues/default", {"concurrency_limit": limit})
        assert (answer.status, answer.body["concurrency_limit"]) == (200, limit)
        assert (await client.get("/v1/queues/default")).body["concurrency_limit"] == limit


@pytest.mark.parametrize("limit", [0, -1, 1.5, "3", True, 10**7, [1]])
async def test_an_impossible_limit_is_refused_by_name(client: Client, limit: object) -> None:
    await create(client)
    refused = await client.patch("/v1/queues/default", {"concurrency_limit": limit})
    assert refused.code == (400, "VALIDATION_ERROR")
    assert refused.error["details"][0]["field"] == "concurrency_limit"
    for body in ({}, {"limit": 3}):
        assert (await client.patch("/v1/queues/default", body)).status == 400


@pytest.mark.parametrize("name", ["nobody", "%00", "%ED%A0%80", "x" * 3000])
async def test_a_queue_that_nobody_named_is_not_found(client: Client, name: str) -> None:
    answers = [
        await client.get(f"/v1/queues/{name}"),
        await client.patch(f"/v1/queues/{name}", {"concurrency_limit": 3}),
        await client.post(f"/v1/queues/{name}/pause"),
        await client.post(f"/v1/queues/{name}/resume"),
    ]
    assert {answer.code for answer in answers} == {(404, "QUEUE_NOT_FOUND")}


async def test_a_paused_queue_says_so_and_goes_on_at_once_when_resumed(
    client: Client, database: Database
) -> None:
    await create(client)
    await client.post("/v1/executions", {"job": "mail"})
    worker = await make_worker(database)
    (lane,) = await database.fetch(sql("select id from foliot.lanes"))
    wanted = ClaimRequest(worker, "default", [lane["id"]], 5)
    paused = await client.post("/v1/queues/default/pause", {"note": "full"}, idempotency_key="1")
    assert (paused.body["status"], paused.body["status_note"]) == ("PAUSED", "full")
    again = await client.post("/v1/queues/default/pause", {"note": "full"}, idempotency_key="1")
    assert again.headers["idempotency-replayed"] == "true"
    assert await claim(database, wanted) == ()
    assert (await client.get("/v1/queues/default")).body["depth"] == 1
    resumed = await client.post("/v1/queues/default/resume")
    assert (resumed.body["status"], resumed.body["paused_at"]) == ("ACTIVE", None)
    assert len(await claim(database, wanted)) == 1


KEY = {"key": "user-${payload.user.id}", "limit": 1}


@pytest.mark.parametrize("payload", [None, {}, {"user": {}}, {"user": {"id": None}}, {"user": 3}])
async def test_a_key_that_no_fire_could_fill_is_refused_when_the_job_is_saved(
    client: Client, payload: object
) -> None:
    """So no scheduled execution ever comes to be without its key."""
    body = {"name": "mail", "schedule": CRON, "concurrency": KEY, "payload": payload}
    refused = await client.post("/v1/jobs", body)
    assert refused.code == (400, "VALIDATION_ERROR")
    (detail,) = refused.error["details"]
    assert (detail["field"], "payload.user" in detail["message"]) == ("concurrency.key", True)
    job_id = await create(client, schedule={"type": "MANUAL"}, concurrency=KEY, payload=payload)
    patched = await client.patch(f"/v1/jobs/{job_id}", {"schedule": CRON})
    assert patched.code == (400, "VALIDATION_ERROR")
    assert (await client.get(f"/v1/jobs/{job_id}")).body["schedule"]["type"] == "MANUAL"


async def test_a_payload_that_cannot_fill_the_key_is_refused_when_it_is_sent(
    client: Client, database: Database
) -> None:
    job_id = await create(client, schedule=CRON, concurrency=KEY, payload={"user": {"id": 1}})
    good: dict[str, object] = {"user": {"id": 2}}
    bad: dict[str, object] = {"user": {}}
    answers = [
        await client.post(f"/v1/jobs/{job_id}/trigger", {"payload_override": bad}),
        await client.post("/v1/executions", {"job": "mail", "payload": bad}),
        await client.post(
            "/v1/executions/bulk",
            {"executions": [{"job": "mail", "payload": each} for each in (good, bad)]},
        ),
    ]
    for refused in answers:
        assert refused.code == (400, "VALIDATION_ERROR")
        assert "payload.user.id is missing" in refused.error["message"]
    assert await database.fetch_value(sql("select count(*) from foliot.executions")) == 0
    made = await client.post(f"/v1/jobs/{job_id}/trigger", {"payload_override": good})
    assert made.status == 202
