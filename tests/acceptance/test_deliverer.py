"""Completion callbacks on their way to real receivers: signed, repeated, bounded, refused."""

import asyncio
import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from foliot.core.ids import ExecutionId
from foliot.core.signatures import verify
from foliot.core.states import ExecutionEvent
from foliot.runtime.clock import SystemClock
from foliot.runtime.envelope import Keyring
from foliot.runtime.service import served
from foliot.store.database import Database
from foliot.store.deliveries import StoredDelivery, list_deliveries, redeliver
from foliot.store.secrets import put_secret
from foliot.store.signing_keys import open_signing_keys, rotate_signing_key
from foliot.testing.clock import ManualClock
from foliot.testing.database import sql
from foliot.testing.deliveries import deliver_due, deliverer, make_ended
from foliot.testing.receiver import Received, Talk, receiver
from foliot.testing.rows import DEFAULT_TENANT, NOW, make_tenant
from foliot.worker.deliver import AT_ONCE, HELD_PATIENCE_SECONDS, PER_HOST

RING = Keyring([("k1", bytes(32))])
VALUE = "canary-value-1234567890"


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def answering(*statuses: str, **headers: str) -> Any:  # noqa: ANN401 - a behaviour
    """One after another, the last for ever."""
    left = list(statuses)

    async def answer(talk: Talk) -> None:
        status = left.pop(0) if len(left) > 1 else left[0]
        await talk.answer(status, b"hm", **headers)

    return answer


async def told(database: Database, execution_id: ExecutionId) -> StoredDelivery:
    (found,) = await list_deliveries(database, DEFAULT_TENANT, execution_id)
    return found


async def keys(database: Database) -> list[bytes]:
    opened = await open_signing_keys(database, RING, DEFAULT_TENANT)
    return [each.key for each in opened.keys]


def fits(request: Received, key: bytes) -> bool:
    sent_at = float(request.headers["webhook-timestamp"])
    try:
        return bool(verify([key], request.headers, request.body, sent_at))
    except Exception:  # noqa: BLE001 - whatever is wrong with it
        return False


async def test_an_end_is_told_as_the_api_shows_it(database: Database) -> None:
    async with receiver() as there, deliverer(database, keyring=RING) as made:
        (execution_id,) = await make_ended(database, f"{there.url}/hook?x=1", result={"n": 7})
        assert await deliver_due(made) == 1
        assert await deliver_due(made, later(90_000)) == 0
    (request,) = there.requests
    assert (request.method, request.path) == ("POST", "/hook?x=1")
    body = json.loads(request.body)
    assert body.keys() == {"type", "timestamp", "data"}
    assert body["type"] == "execution.succeeded"
    assert datetime.fromisoformat(body["timestamp"]) == NOW
    data = body["data"]
    assert (data["execution_id"], data["status"]) == (str(execution_id), "SUCCEEDED")
    assert (data["result"], data["fence"]) == ({"n": 7}, 3)
    headers = request.headers
    assert headers["webhook-id"] == headers["x-idempotency-key"] == f"{execution_id}-ended"
    assert headers["x-execution-id"] == str(execution_id)
    assert (headers["x-fencing-token"], headers["x-attempt-number"]) == ("3", "1")
    found = await told(database, execution_id)
    assert (found.state, found.delivered_at) == ("DELIVERED", NOW)
    assert found.attempts[0]["http_status"] == 200
    assert found.attempts[0]["body_preview"] == '{"ok": true}'
    assert found.attempts[0]["error"] is None


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (ExecutionEvent.FAIL, "execution.failed"),
        (ExecutionEvent.TIME_OUT, "execution.timed_out"),
        (ExecutionEvent.CANCEL, "execution.cancelled"),
    ],
)
async def test_every_end_has_its_type(database: Database, event: ExecutionEvent, kind: str) -> None:
    async with receiver() as there, deliverer(database) as made:
        await make_ended(database, there.url, event=event)
        await deliver_due(made)
    assert json.loads(there.requests[0].body)["type"] == kind


async def test_it_is_signed_with_the_time_of_the_database(database: Database) -> None:
    async with receiver() as there, deliverer(database, keyring=RING, clock=ManualClock()) as made:
        await make_ended(database, there.url)
        await deliver_due(made)
    (request,) = there.requests
    (key,) = await keys(database)
    assert fits(request, key)
    now = await database.fetch_value(sql("select extract(epoch from clock_timestamp())::float8"))
    assert abs(now - float(request.headers["webhook-timestamp"])) < 60


async def test_a_rotated_key_signs_together_with_the_old_one(database: Database) -> None:
    clock = ManualClock()
    async with receiver() as there, deliverer(database, keyring=RING, clock=clock) as made:
        await make_ended(database, there.url, 2)
        (old,) = await keys(database)
        await rotate_signing_key(database, RING, DEFAULT_TENANT)
        new, _ = await keys(database)
        await deliver_due(made)
        clock.seconds += 10
        await rotate_signing_key(database, RING, DEFAULT_TENANT, grace_seconds=0)
        await make_ended(database, there.url)
        await deliver_due(made)
    first, _, last = there.requests
    assert fits(first, old)
    assert fits(first, new)
    assert not fits(last, old)
    assert not fits(last, new)
    assert fits(last, (await keys(database))[0])


async def test_without_keys_it_is_sent_unsigned_but_never_for_a_tenant_that_has_one(
    database: Database,
) -> None:
    async with receiver() as there, deliverer(database) as made:
        await make_ended(database, there.url)
        await deliver_due(made)
        assert "webhook-signature" not in there.requests[0].headers
        await open_signing_keys(database, RING, DEFAULT_TENANT)
    async with deliverer(database) as another:
        (execution_id,) = await make_ended(database, there.url)
        await deliver_due(another)
        found = await told(database, execution_id)
        assert (found.state, found.attempts) == ("PENDING", [])
    assert len(there.requests) == 1


async def test_a_failure_is_tried_again_under_the_same_id(database: Database) -> None:
    behave = answering("503 Down", "404 No", "200 OK")
    async with receiver(behave) as there, deliverer(database, keyring=RING) as made:
        (execution_id,) = await make_ended(database, there.url)
        at = 0.0
        for _ in range(3):
            assert await deliver_due(made, later(at)) == 1
            assert await deliver_due(made, later(at + 3)) == 0
            at += 100
    assert len({request.headers["webhook-id"] for request in there.requests}) == 1
    assert [each.headers["x-attempt-number"] for each in there.requests] == ["1", "2", "3"]
    found = await told(database, execution_id)
    assert found.state == "DELIVERED"
    assert [entry["http_status"] for entry in found.attempts] == [200, 404, 503]
    assert found.attempts[2]["error"]["type"] == "HTTP_ERROR"
    assert found.attempts[2]["body_preview"] == "hm"


async def test_retry_after_is_honoured(database: Database) -> None:
    behave = answering("429 Later", retry_after="600")
    async with receiver(behave) as there, deliverer(database) as made:
        await make_ended(database, there.url)
        await deliver_due(made)
        assert await deliver_due(made, later(599)) == 0
        assert await deliver_due(made, later(600)) == 1


async def test_a_receiver_that_always_fails_is_given_up_after_a_day(database: Database) -> None:
    clock = ManualClock()
    async with (
        receiver(answering("500 No")) as there,
        deliverer(database, clock=clock) as made,
    ):
        (execution_id,) = await make_ended(database, there.url)
        hours = 0
        while (found := await told(database, execution_id)).state == "PENDING":
            await deliver_due(made, max(NOW, found.next_attempt_at))
            clock.seconds += 3600  # so that no breaker opens
            hours += 1
            assert hours < 50
        assert found.state == "GIVEN_UP"
        assert found.given_up_at is not None
        assert later(82_000) < found.given_up_at <= later(86_400)
        assert len(there.requests) == found.attempt_number >= 30
        assert await deliver_due(made, later(999_999)) == 0
        there.behave = answering("200 OK")
        await redeliver(database, DEFAULT_TENANT, execution_id, later(1_000_000))
        await deliver_due(made, later(1_000_000))
        assert (await told(database, execution_id)).state == "DELIVERED"


async def test_a_receiver_that_wants_nothing_more_is_left_alone(database: Database) -> None:
    async with receiver(answering("410 Gone")) as there, deliverer(database) as made:
        (execution_id,) = await make_ended(database, there.url)
        await deliver_due(made)
    assert (await told(database, execution_id)).state == "GIVEN_UP"


@pytest.mark.parametrize(
    "url",
    ["http://169.254.169.254/latest", "http://10.0.0.7/", "http://[::1]:9/", "http://127.0.0.1/"],
)
async def test_where_it_may_not_go_nothing_is_sent(database: Database, url: str) -> None:
    async with deliverer(database, allow="none") as made:
        (execution_id,) = await make_ended(database, url)
        await deliver_due(made)
    found = await told(database, execution_id)
    assert found.state == "GIVEN_UP"
    assert found.attempts[0]["error"]["type"] == "TARGET_REFUSED"


async def test_what_is_open_to_one_tenant_is_closed_to_another(database: Database) -> None:
    """The guard is the tenant's own, also where both call the same address."""
    guest = await make_tenant(database, callback_allow=["127.0.0.0/8"])
    async with receiver() as there, deliverer(database, allow="none") as made:
        (ours,) = await make_ended(database, there.url)
        (theirs,) = await make_ended(database, there.url, tenant_id=guest)
        assert await deliver_due(made) == 2
    (request,) = there.requests
    assert request.headers["x-execution-id"] == str(theirs)
    assert (await told(database, ours)).attempts[0]["error"]["type"] == "TARGET_REFUSED"


async def test_a_secret_in_the_address_is_filled_in_and_masked(database: Database) -> None:
    await put_secret(database, RING, (DEFAULT_TENANT, "TOKEN"), VALUE)

    async def echo(talk: Talk) -> None:
        await talk.answer("500 No", f"you called {talk.request.path}".encode())

    async with receiver(echo) as there, deliverer(database, keyring=RING) as made:
        url = f"{there.url}/${{secrets.TOKEN}}"
        (execution_id,) = await make_ended(database, url, result="${secrets.TOKEN}")
        await deliver_due(made)
    assert there.requests[0].path == f"/{VALUE}"
    assert json.loads(there.requests[0].body)["data"]["result"] == "${secrets.TOKEN}"
    (entry,) = (await told(database, execution_id)).attempts
    assert entry["body_preview"] == "you called /***"
    kept = await database.fetch_value(
        sql("select string_agg(d::text, '') from foliot.deliveries d")
    )
    assert VALUE not in kept


async def test_a_missing_secret_may_still_be_written(database: Database) -> None:
    async with receiver() as there, deliverer(database, keyring=RING) as made:
        (execution_id,) = await make_ended(database, f"{there.url}/${{secrets.TOKEN}}")
        await deliver_due(made)
        (entry,) = (await told(database, execution_id)).attempts
        assert entry["error"]["type"] == "MISSING_SECRET"
        await put_secret(database, RING, (DEFAULT_TENANT, "TOKEN"), VALUE)
        await deliver_due(made, later(60))
    assert (await told(database, execution_id)).state == "DELIVERED"


async def test_a_slow_receiver_does_not_hold_up_others(database: Database) -> None:
    patience = asyncio.Event()

    async def slow(talk: Talk) -> None:
        await patience.wait()
        await talk.answer()

    async with (
        receiver(slow) as there,
        receiver() as quick,
        deliverer(database) as made,
        asyncio.timeout(20),
    ):
        await make_ended(database, there.url, 2 * AT_ONCE)
        await make_ended(database, quick.url, 5)
        passes: set[asyncio.Task[int]] = set()
        at = 0.0
        while len(quick.requests) < 5:
            passes.add(asyncio.get_running_loop().create_task(deliver_due(made, later(at))))
            await SystemClock().sleep(0.05)
            at += 0.05
        assert len(there.requests) <= PER_HOST
        patience.set()
        await asyncio.gather(*passes)
    waiting = await database.fetch(
        sql("select * from foliot.deliveries where delivered_at is null")
    )
    assert {row["attempt_number"] for row in waiting} <= {0}, "to be held costs nothing"


async def test_one_whose_turn_never_comes_is_given_up_in_the_end(database: Database) -> None:
    async with receiver(answering("500 No")) as there, deliverer(database) as made:
        await make_ended(database, there.url, 10)
        await deliver_due(made)  # the breaker is open now
        (execution_id,) = await make_ended(database, there.url)
        await deliver_due(made)
        assert (await told(database, execution_id)).state == "PENDING"
        await deliver_due(made, later(HELD_PATIENCE_SECONDS + 60))
        found = await told(database, execution_id)
    assert found.state == "GIVEN_UP"
    assert "does not answer" in found.attempts[0]["error"]["message"]


async def test_an_execution_that_is_no_longer_kept_is_given_up(database: Database) -> None:
    async with receiver() as there, deliverer(database) as made:
        (execution_id,) = await make_ended(database, there.url)
        await database.execute(sql("delete from foliot.attempts"))
        await deliver_due(made)
    assert (await told(database, execution_id)).state == "GIVEN_UP"
    assert there.requests == []


async def test_who_leaves_gives_back_what_is_under_way(
    database: Database, database_url: str
) -> None:
    async def silent(talk: Talk) -> None:
        await talk.reader.read()

    async with receiver(silent) as there, Database(database_url) as own:
        (execution_id,) = await make_ended(database, there.url)
        await database.execute(
            sql("update foliot.deliveries set next_attempt_at = $1"), later(-1e8)
        )
        async with (
            deliverer(own) as made,
            asyncio.timeout(15),
            served(made.serve, name="deliveries"),
        ):
            await there.until(1)
    found = await told(database, execution_id)
    assert (found.state, found.attempts) == ("PENDING", [])
    left = await database.fetch_value(sql("select leased_until from foliot.deliveries"))
    assert left is None
