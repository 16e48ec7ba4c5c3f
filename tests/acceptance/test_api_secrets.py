"""`/v1/secrets`: what is written never comes back, whatever is asked and however it fails."""

import logging
from typing import Any

import pytest

from foliot.core.ids import TenantId
from foliot.runtime.envelope import Keyring
from foliot.store.database import Database
from foliot.store.secrets import open_secrets
from foliot.testing.database import sql
from foliot.testing.rows import DEFAULT_TENANT, make_tenant
from foliot.testing.web import Client, client_of

RING = Keyring([("k1", bytes(32))])
VALUE = "canary-value-1234567890"
HASHES = sql("select request_hash, answer::text as answer from foliot.idempotency_keys")


@pytest.fixture
def client(database: Database) -> Client:
    return client_of(database, keyring=RING)


async def kept(database: Database, name: str, tenant: TenantId = DEFAULT_TENANT) -> str:
    return (await open_secrets(database, RING, tenant, [name])).values[name]


async def test_a_secret_is_written_and_seen_without_its_value(
    client: Client, database: Database
) -> None:
    made = await client.post("/v1/secrets", {"name": "TOKEN", "value": VALUE})
    assert made.status == 201
    assert made.headers["location"] == "/v1/secrets/TOKEN"
    assert made.body.keys() == {"name", "version", "created_at", "updated_at"}
    assert await kept(database, "TOKEN") == VALUE
    read = await client.get("/v1/secrets/TOKEN")
    listed = await client.get("/v1/secrets", count="true")
    assert read.body == made.body
    assert listed.body == {"items": [made.body], "next_cursor": None, "total": 1}


async def test_the_same_name_again_is_the_next_version(client: Client, database: Database) -> None:
    assert (await client.put("/v1/secrets/TOKEN", {"value": "one"})).status == 201
    again = await client.put("/v1/secrets/TOKEN", {"name": "TOKEN", "value": "two"})
    assert (again.status, again.body["version"]) == (200, 2)
    third = await client.post("/v1/secrets", {"name": "TOKEN", "value": "three"})
    assert (third.status, third.body["version"]) == (200, 3)
    assert await kept(database, "TOKEN") == "three"


async def test_a_secret_is_deleted_once(client: Client) -> None:
    await client.post("/v1/secrets", {"name": "TOKEN", "value": VALUE})
    assert (await client.delete("/v1/secrets/TOKEN")).body["name"] == "TOKEN"
    for answer in (await client.delete("/v1/secrets/TOKEN"), await client.get("/v1/secrets/TOKEN")):
        assert answer.code == (404, "SECRET_NOT_FOUND")


async def test_pages_lead_through_the_list(client: Client) -> None:
    names = [f"S{n}" for n in range(5)]
    for name in names:
        await client.put(f"/v1/secrets/{name}", {"value": VALUE})
    found: list[str] = []
    cursor: dict[str, Any] = {}
    while cursor is not None:
        page = await client.get("/v1/secrets", limit=2, **cursor)
        found += [item["name"] for item in page.body["items"]]
        after = page.body["next_cursor"]
        if after is None:
            break
        cursor = {"cursor": after}
    assert found == names
    assert (await client.get("/v1/secrets", cursor="x")).code == (400, "INVALID_CURSOR")
    assert (await client.get("/v1/secrets", page=2)).code == (400, "VALIDATION_ERROR")


async def test_another_tenants_secret_is_unknown(client: Client, database: Database) -> None:
    other = await make_tenant(database)
    theirs = Client(client.app, {**client.headers, "x-tenant-id": str(other)})
    await theirs.put("/v1/secrets/TOKEN", {"value": "theirs"})
    assert (await client.get("/v1/secrets/TOKEN")).code == (404, "SECRET_NOT_FOUND")
    assert (await client.delete("/v1/secrets/TOKEN")).code == (404, "SECRET_NOT_FOUND")
    assert (await client.get("/v1/secrets")).body["items"] == []
    await client.put("/v1/secrets/TOKEN", {"value": "mine"})
    assert await kept(database, "TOKEN") == "mine"
    assert await kept(database, "TOKEN", TenantId(other)) == "theirs"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "TOKEN", "value": [VALUE]}, "value"),
        ({"name": "TOKEN", "value": {"x": VALUE}}, "value"),
        ({"name": "TOKEN", "value": f"{VALUE}\0"}, "value"),
        ({"name": "TOKEN", "value": f"{VALUE}\ud800"}, "value"),
        ({"name": "TOKEN", "value": ""}, "value"),
        ({"name": "TOKEN", "value": None}, "value"),
        ({"name": "TOKEN", "valeu": VALUE}, "valeu"),
        ({"name": "TOKEN", "value": VALUE, "note": "x"}, "note"),
        ({"name": VALUE, "value": "TOKEN"}, "name"),
        ({"name": f"1{VALUE}", "value": VALUE}, "name"),
        ({"value": VALUE}, "name"),
        (VALUE, "body"),
        ([VALUE], "body"),
        (f'{{"name": "TOKEN", "value": "{VALUE}'.encode(), None),
        (VALUE.encode(), None),
    ],
)
async def test_no_refusal_repeats_what_was_sent(
    client: Client, body: object, field: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    refused = await client.post("/v1/secrets", body)
    assert refused.code == (400, "VALIDATION_ERROR")
    assert refused.error["details"][0]["field"] == field
    assert VALUE not in str(refused.body)
    assert VALUE not in caplog.text
    assert (await client.get("/v1/secrets")).body["items"] == []


async def test_a_value_has_a_size(client: Client, database: Database) -> None:
    assert (await client.put("/v1/secrets/TOKEN", {"value": "ä" * 32_768})).status == 201
    assert await kept(database, "TOKEN") == "ä" * 32_768
    refused = await client.put("/v1/secrets/TOKEN", {"value": "ä" * 32_768 + "x"})
    assert refused.code == (413, "PAYLOAD_TOO_LARGE")
    assert "65536" in refused.error["message"]
    assert "ääää" not in str(refused.body)


async def test_the_name_in_the_body_is_the_one_in_the_address(client: Client) -> None:
    refused = await client.put("/v1/secrets/TOKEN", {"name": "OTHER", "value": VALUE})
    assert refused.code == (400, "VALIDATION_ERROR")
    wrong = await client.put("/v1/secrets/token", {"value": VALUE})
    assert wrong.error["hint"].startswith("use capitals")


@pytest.mark.parametrize("name", ["token", "a%20b", "%00", "A" * 200])
async def test_what_is_no_name_is_not_there(client: Client, name: str) -> None:
    assert (await client.get(f"/v1/secrets/{name}")).code == (404, "SECRET_NOT_FOUND")


async def test_without_keys_the_operator_is_told_what_to_set(database: Database) -> None:
    client = client_of(database)
    for answer in (
        await client.post("/v1/secrets", {"name": "TOKEN", "value": VALUE}),
        await client.put("/v1/secrets/TOKEN", {"value": VALUE}),
    ):
        assert answer.code == (400, "VALIDATION_ERROR")
        assert answer.error["details"][0]["field"] == "FOLIOT_SECRET_KEYS"
        assert "openssl rand -base64 32" in answer.error["hint"]
    assert (await client.get("/v1/secrets")).body["items"] == []


async def test_a_request_sent_twice_is_carried_out_once_and_leaves_no_trace_of_the_value(
    client: Client, database: Database
) -> None:
    body = {"name": "TOKEN", "value": VALUE}
    first = await client.post("/v1/secrets", body, idempotency_key="once")
    again = await client.post("/v1/secrets", body, idempotency_key="once")
    assert (first.status, again.status) == (201, 201)
    assert again.headers["idempotency-replayed"] == "true"
    assert again.body == first.body
    reused = await client.post(
        "/v1/secrets", {"name": "TOKEN", "value": "another"}, idempotency_key="once"
    )
    assert reused.code == (422, "IDEMPOTENCY_KEY_REUSED")
    assert await kept(database, "TOKEN") == VALUE
    (row,) = await database.fetch(HASHES)
    assert VALUE not in row["answer"]
    # What is kept of the body depends on the key: nobody can guess at the value by it.
    other = client_of(database, keyring=Keyring([("k2", bytes(range(32)))]))
    elsewhere = await other.post("/v1/secrets", body, idempotency_key="twice")
    assert elsewhere.status == 200
    hashes = {bytes(each["request_hash"]) for each in await database.fetch(HASHES)}
    assert len(hashes) == 2


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"payload": {"a": ["${secrets.token}"]}}, "payload.a[0]"),
        ({"target": {"type": "HTTP", "url": "https://x.example/${secrets.A B}"}}, "target.url"),
        (
            {
                "target": {
                    "type": "HTTP",
                    "url": "https://x.example",
                    "headers": {"A": "${secret.A}"},
                }
            },
            "target.headers.A",
        ),
        ({"target": {"type": "COMMAND", "argv": ["x", "${secrets.}"]}}, "target.argv[1]"),
        ({"callback_url": "https://x.example/${secrets.a}"}, "callback_url"),
    ],
)
async def test_a_job_is_saved_only_with_references_that_can_be_filled(
    client: Client, change: dict[str, Any], field: str
) -> None:
    body = {
        "name": "job",
        "schedule": {"type": "MANUAL"},
        "target": {"type": "HANDLER", "name": "work"},
    }
    refused = await client.post("/v1/jobs", body | change)
    assert refused.code == (400, "VALIDATION_ERROR")
    assert refused.error["details"][0]["field"] == field
    # A secret that is not there yet is no reason.
    assert (await client.post("/v1/jobs", body | {"payload": "${secrets.LATER}"})).status == 201
