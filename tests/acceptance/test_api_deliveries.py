"""`/v1/executions/{id}/deliveries` and `/v1/signing-keys`: what is shown, once and to whom."""

import json

import pytest

from foliot.core.signatures import read_key
from foliot.runtime.envelope import Keyring
from foliot.store.database import Database
from foliot.store.signing_keys import open_signing_keys
from foliot.testing.database import sql
from foliot.testing.deliveries import deliver_due, deliverer, make_ended
from foliot.testing.receiver import receiver
from foliot.testing.rows import DEFAULT_TENANT, make_execution, make_tenant
from foliot.testing.web import Client, client_of

RING = Keyring([("k1", bytes(32))])
KEYS = "/v1/signing-keys"
ANSWERS = sql("select string_agg(answer::text, '') from foliot.idempotency_keys")


@pytest.fixture
def client(database: Database) -> Client:
    return client_of(database, keyring=RING)


async def stranger(client: Client, database: Database) -> Client:
    other = await make_tenant(database)
    return Client(client.app, {**client.headers, "x-tenant-id": str(other)})


async def test_deliveries_are_shown_with_every_try(client: Client, database: Database) -> None:
    async with receiver() as there, deliverer(database) as made:
        (execution_id,) = await make_ended(database, there.url)
        place = f"/v1/executions/{execution_id}/deliveries"
        (waiting,) = (await client.get(place)).body["items"]
        assert (waiting["status"], waiting["attempts"]) == ("PENDING", [])
        assert waiting["next_attempt_at"] is not None
        await deliver_due(made)
        listed = (await client.get(place)).body
    assert listed["next_cursor"] is None
    (found,) = listed["items"]
    assert found["message_id"] == f"{execution_id}-ended"
    assert (found["type"], found["status"]) == ("execution.succeeded", "DELIVERED")
    assert (found["next_attempt_at"], found["attempt_number"]) == (None, 1)
    (entry,) = found["attempts"]
    assert entry.keys() == {
        *("attempt_number", "at", "duration_ms", "http_status", "body_preview", "error"),
    }


async def test_what_was_delivered_is_delivered_again_on_request(
    client: Client, database: Database
) -> None:
    async with receiver() as there, deliverer(database) as made:
        (execution_id,) = await make_ended(database, there.url)
        await deliver_due(made)
        place = f"/v1/executions/{execution_id}/deliveries/redeliver"
        again = await client.post(place, idempotency_key="once")
        assert (again.status, again.body["status"]) == (202, "PENDING")
        replayed = await client.post(place, idempotency_key="once")
        assert replayed.headers["idempotency-replayed"] == "true"
        await deliver_due(made)
    first, second = there.requests
    assert first.headers["x-idempotency-key"] == second.headers["x-idempotency-key"]
    assert json.loads(first.body) == json.loads(second.body)


async def test_without_a_callback_there_is_nothing_to_deliver(
    client: Client, database: Database
) -> None:
    row = await make_execution(database)
    place = f"/v1/executions/{row.execution_id}/deliveries"
    assert (await client.get(place)).body == {"items": [], "next_cursor": None}
    refused = await client.post(f"{place}/redeliver")
    assert refused.code == (400, "VALIDATION_ERROR")
    assert "callback_url" in refused.error["details"][0]["hint"]


async def test_a_redelivery_is_asked_for_with_nothing_but_a_key(
    client: Client, database: Database
) -> None:
    (execution_id,) = await make_ended(database, "https://example.com")
    place = f"/v1/executions/{execution_id}/deliveries/redeliver"
    for body, field in (
        (b"abc", None),
        (b"[]", "body"),
        ({"idempotency_key": ["a"]}, "idempotency_key"),
        ({"idempotency_kee": "a"}, "idempotency_kee"),
    ):
        refused = await client.post(place, body)
        assert refused.code == (400, "VALIDATION_ERROR"), body
        assert refused.error["details"][0]["field"] == field
    unreadable = await client.post(place, b"\xff")
    assert unreadable.code == (400, "VALIDATION_ERROR")
    assert unreadable.error["hint"] == "send JSON, as UTF-8"
    for body in (b"", b"null", {}, {"idempotency_key": "once"}):
        assert (await client.post(place, body)).status == 202, body
    again = await client.post(place, idempotency_key="once")
    assert again.headers["idempotency-replayed"] == "true"


@pytest.mark.parametrize("what", ["nonsense", "0191f000-0000-8000-8000-000000000001"])
async def test_an_unknown_execution_is_unknown(client: Client, what: str) -> None:
    place = f"/v1/executions/{what}/deliveries"
    assert (await client.get(place)).code == (404, "EXECUTION_NOT_FOUND")
    assert (await client.post(f"{place}/redeliver")).code == (404, "EXECUTION_NOT_FOUND")


async def test_anothers_deliveries_are_unknown(client: Client, database: Database) -> None:
    (execution_id,) = await make_ended(database, "https://example.com")
    theirs = await stranger(client, database)
    place = f"/v1/executions/{execution_id}/deliveries"
    assert (await theirs.get(place)).code == (404, "EXECUTION_NOT_FOUND")
    assert (await theirs.post(f"{place}/redeliver")).code == (404, "EXECUTION_NOT_FOUND")


async def test_a_new_signing_key_is_shown_once(client: Client, database: Database) -> None:
    assert (await client.get(KEYS)).body == {"items": [], "next_cursor": None}
    made = await client.post(f"{KEYS}/rotate", idempotency_key="once")
    assert (made.status, made.body["number"], made.body["ends_at"]) == (201, 1, None)
    key = made.body["key"]
    opened = await open_signing_keys(database, RING, DEFAULT_TENANT)
    assert [each.key for each in opened.keys] == [read_key(key)]
    again = await client.post(f"{KEYS}/rotate", idempotency_key="once")
    assert again.body == made.body | {"key": None}
    (listed,) = (await client.get(KEYS)).body["items"]
    assert listed == {name: made.body[name] for name in ("number", "created_at", "ends_at")}
    assert key not in await database.fetch_value(ANSWERS), "what is kept does not have it"


async def test_the_key_before_it_ends_when_it_was_asked_to(client: Client) -> None:
    await client.post(f"{KEYS}/rotate")
    await client.post(f"{KEYS}/rotate", {"grace_seconds": 60})
    await client.post(f"{KEYS}/rotate", {"grace_seconds": 0})
    newest, *older = (await client.get(KEYS)).body["items"]
    assert newest["ends_at"] is None
    assert all(each["ends_at"] is not None for each in older)


@pytest.mark.parametrize("seconds", [-1, 1e9, "day", None])
async def test_a_grace_that_is_none_is_refused(client: Client, seconds: object) -> None:
    answer = await client.post(f"{KEYS}/rotate", {"grace_seconds": seconds})
    if seconds is None:
        assert answer.status == 201
    else:
        assert answer.code == (400, "VALIDATION_ERROR")
        assert answer.error["details"][0]["field"] == "grace_seconds"


async def test_each_tenant_rotates_its_own(client: Client, database: Database) -> None:
    await client.post(f"{KEYS}/rotate")
    theirs = await stranger(client, database)
    assert (await theirs.get(KEYS)).body["items"] == []


async def test_without_a_keyring_no_key_can_be_made(database: Database) -> None:
    answer = await client_of(database).post(f"{KEYS}/rotate")
    assert answer.code == (400, "VALIDATION_ERROR")
    assert "FOLIOT_SECRET_KEYS" in json.dumps(answer.body)
