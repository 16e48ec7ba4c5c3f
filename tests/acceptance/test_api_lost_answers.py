"""Work that was done and whose answer was never kept: the next copy tells of it, and does no more.

A node dies after the commit, or loses the database while it reads for the answer. Whatever has
become of the job since, the work was done once.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from foliot.store.database import Database
from foliot.store.errors import DatabaseUnreachable
from foliot.testing.database import sql
from foliot.testing.web import Answer, Client, client_of

LOSE = sql(
    "update foliot.idempotency_keys set answer = null, abandoned = true where route like 'POST %'"
)
TRACES = [f"00-{digit * 32}-{'b' * 16}-01" for digit in "ac"]
JOB = {"name": "pay", "concurrency": {"limit": 2, "key": "of-${payload.customer}"}}
PAYLOAD = {"customer": "x"}

Since = Callable[[Client, str], Awaitable[object]]


@pytest.fixture
def client(database: Database) -> Client:
    return client_of(database)


async def leave_alone(_: Client, __: str) -> None:
    pass


async def pause(client: Client, path: str) -> Answer:
    return await client.post(f"{path}/pause")


async def edit(client: Client, path: str) -> Answer:
    return await client.patch(path, {"priority": 1, "queue": "other"})


async def delete(client: Client, path: str) -> Answer:
    return await client.delete(path)


async def make_anew(client: Client, path: str) -> Answer:
    await client.delete(path)
    return await client.post("/v1/jobs", {"name": "pay"})


async def raise_limit(client: Client, path: str) -> Answer:
    return await client.patch(path, {"concurrency": {"limit": 3}})


async def lift_limit(client: Client, path: str) -> Answer:
    return await client.patch(path, {"concurrency": {"limit": None, "key": None}})


async def want_another_payload(client: Client, path: str) -> Answer:
    return await client.patch(path, {"concurrency": {"key": "of-${payload.region}"}})


SINCE: list[Since] = [
    leave_alone, pause, edit, delete, make_anew, raise_limit, lift_limit, want_another_payload,
]  # fmt: skip


def asked(way: str, job_path: str) -> tuple[str, dict[str, Any]]:
    """Where the request goes, and its body."""
    item = {"job": "pay", "payload": PAYLOAD}
    ways: dict[str, tuple[str, dict[str, Any]]] = {
        "trigger": (f"{job_path}/trigger", {"payload_override": PAYLOAD}),
        "enqueue": ("/v1/executions", item),
        "under a key of its own": ("/v1/executions", item | {"concurrency_key": "mine"}),
        "bulk": ("/v1/executions/bulk", {"executions": [item, item]}),
    }
    return ways[way]


@pytest.mark.parametrize("since", SINCE)
@pytest.mark.parametrize("way", ["trigger", "enqueue", "under a key of its own", "bulk"])
async def test_what_was_enqueued_is_the_answer_whatever_became_of_its_job(
    client: Client, database: Database, way: str, since: Since
) -> None:
    made = await client.post("/v1/jobs", JOB)
    job_path = f"/v1/jobs/{made.body['job_id']}"
    path, body = asked(way, job_path)
    first = await client.post(path, body, idempotency_key="k", traceparent=TRACES[0])
    assert first.status == 202, first.body
    number = len((await client.get("/v1/executions")).body["items"])
    await since(client, job_path)
    for _ in range(2):
        await database.execute(LOSE)
        again = await client.post(path, body, idempotency_key="k", traceparent=TRACES[1])
        assert again.status == 202, again.body
        assert ids_of(again) == ids_of(first)
    kept = await client.post(path, body, idempotency_key="k")
    assert (kept.body, kept.headers["idempotency-replayed"]) == (again.body, "true")
    assert len((await client.get("/v1/executions")).body["items"]) == number


def ids_of(answer: Answer) -> list[str]:
    items = answer.body.get("items", [answer.body])
    return [item["execution_id"] for item in items]


@pytest.mark.parametrize("since", SINCE)
async def test_what_was_run_again_is_the_answer_whatever_became_of_its_job(
    client: Client, database: Database, since: Since
) -> None:
    job = (await client.post("/v1/jobs", JOB)).body["job_id"]
    asked = await client.post("/v1/executions", {"job": "pay", "payload": PAYLOAD})
    path = f"/v1/executions/{asked.body['execution_id']}"
    await client.post(f"{path}/cancel")
    first = await client.post(f"{path}/retry", idempotency_key="k", traceparent=TRACES[0])
    assert first.status == 202, first.body
    await since(client, f"/v1/jobs/{job}")
    for _ in range(2):
        await database.execute(LOSE)
        again = await client.post(f"{path}/retry", idempotency_key="k", traceparent=TRACES[1])
        assert again.status == 202, again.body
        assert ids_of(again) == ids_of(first)
    assert len((await client.get("/v1/executions")).body["items"]) == 2


async def test_a_copy_that_is_refused_does_not_free_the_key_of_an_earlier_one(
    client: Client, database: Database
) -> None:
    """The first may have been carried out; nobody knows once its traces are gone."""
    job = (await client.post("/v1/jobs", {"name": "pay"})).body["job_id"]
    path = f"/v1/jobs/{job}/trigger"
    await client.post(path, idempotency_key="k")
    await database.execute(LOSE)
    traces = "update foliot.idempotency_keys set key = 'x' where route = 'enqueue'"
    await database.execute(sql(traces))
    await client.delete(f"/v1/jobs/{job}")
    for _ in range(2):
        refused = await client.post(path, idempotency_key="k")
        assert refused.code == (404, "JOB_NOT_FOUND")
    left = sql("select abandoned from foliot.idempotency_keys where route like 'POST %'")
    assert [row["abandoned"] for row in await database.fetch(left)] == [True]
    other = await client.post(path, {"priority": 1}, idempotency_key="k")
    assert other.code == (422, "IDEMPOTENCY_KEY_REUSED")
    assert "'k'" in other.error["message"]


@pytest.mark.parametrize("key", ["\N{GRINNING FACE}" * 255, "é" * 255, '"' * 255])
async def test_a_key_has_255_characters_whatever_they_are(client: Client, key: str) -> None:
    job = (await client.post("/v1/jobs", {"name": "pay"})).body["job_id"]
    path = f"/v1/jobs/{job}/trigger"
    first = await client.post(path, {"idempotency_key": key})
    assert first.status == 202, first.body
    # A header is bytes; what is not ASCII comes as UTF-8.
    again = await client.post(path, idempotency_key=key.encode().decode("latin-1"))
    assert (again.status, again.body) == (202, first.body)
    refused = await client.post(path, {"idempotency_key": key + "x"})
    assert refused.code == (400, "VALIDATION_ERROR")


async def test_two_keys_are_two_requests_also_where_they_are_long(client: Client) -> None:
    job = (await client.post("/v1/jobs", {"name": "pay"})).body["job_id"]
    keys = [end.rjust(255, "\N{GRINNING FACE}") for end in "ab"]
    for key in keys * 2:
        await client.post(f"/v1/jobs/{job}/trigger", {"idempotency_key": key})
    assert len((await client.get("/v1/executions")).body["items"]) == 2


STEPS = {"pause": ("resume", "PAUSED"), "resume": ("pause", "ACTIVE")}


async def paused_or_not(client: Client, step: str) -> tuple[str, str]:
    """The path of a job that the step would change, and its version."""
    made = await client.post("/v1/jobs", {"name": "pay"})
    path = f"/v1/jobs/{made.body['job_id']}"
    if step == "resume":
        made = await client.post(f"{path}/pause")
    return path, made.headers["etag"]


@pytest.mark.parametrize("edited", [False, True])
@pytest.mark.parametrize("step", STEPS)
async def test_a_job_is_not_in_conflict_with_what_the_same_request_did(
    client: Client, database: Database, step: str, edited: bool
) -> None:
    path, seen = await paused_or_not(client, step)
    status = STEPS[step][1]
    first = await client.post(f"{path}/{step}", {"note": "n"}, idempotency_key="k", if_match=seen)
    assert (first.status, first.body["status"]) == (200, status)
    now = first
    if edited:
        now = await client.patch(path, {"priority": 1})
    await database.execute(LOSE)
    again = await client.post(f"{path}/{step}", {"note": "n"}, idempotency_key="k", if_match=seen)
    assert (again.status, again.body) == (200, now.body)
    assert again.headers["etag"] == now.headers["etag"]


@pytest.mark.parametrize("step", STEPS)
async def test_what_was_changed_back_since_is_not_changed_again(
    client: Client, database: Database, step: str
) -> None:
    path, _ = await paused_or_not(client, step)
    await client.post(f"{path}/{step}", idempotency_key="k")
    back = await client.post(f"{path}/{STEPS[step][0]}")
    await database.execute(LOSE)
    again = await client.post(f"{path}/{step}", idempotency_key="k")
    assert (again.status, again.body) == (200, back.body)


@pytest.mark.parametrize("theirs", [{"note": "mine"}, {}])
@pytest.mark.parametrize("step", STEPS)
async def test_a_change_that_another_request_made_is_a_conflict(
    client: Client, monkeypatch: pytest.MonkeyPatch, step: str, theirs: dict[str, str]
) -> None:
    """The first copy changed nothing: the database was away."""
    path, seen = await paused_or_not(client, step)
    stale = {"idempotency_key": "k", "if_match": seen}
    with monkeypatch.context() as outage:
        outage.setattr(f"foliot.store.jobs.{step}", lose_the_database)
        assert (await client.post(f"{path}/{step}", **stale)).status == 503
    if not theirs:
        await client.patch(path, {"priority": 1})
    await client.post(f"{path}/{step}", theirs)
    for _ in range(2):
        refused = await client.post(f"{path}/{step}", **stale)
        assert refused.code == (409, "VERSION_CONFLICT")


@pytest.mark.parametrize("step", STEPS)
async def test_what_was_changed_before_the_request_came_is_not_its_work(
    client: Client, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path, _ = await paused_or_not(client, step)
    back, status = STEPS[step]
    await client.post(f"{path}/{step}")
    await client.post(f"{path}/{back}")
    with monkeypatch.context() as outage:
        outage.setattr(f"foliot.store.jobs.{step}", lose_the_database)
        assert (await client.post(f"{path}/{step}", idempotency_key="k")).status == 503
    again = await client.post(f"{path}/{step}", idempotency_key="k")
    assert (again.status, again.body["status"]) == (200, status)


async def lose_the_database(*_: object, **__: object) -> None:
    raise DatabaseUnreachable("postgresql://a", "gone")
