"""What can be asked of the list of executions: live and finished ones, by the same words."""

from datetime import timedelta

import pytest

from foliot.core.model import ErrorType, Failure
from foliot.core.states import ExecutionEvent as Event
from foliot.store import execution_rows
from foliot.store.claiming import ClaimRequest, Look, claim
from foliot.store.database import Database
from foliot.store.finishing import Outcome, finish
from foliot.store.server_clock import read_clock
from foliot.testing.database import sql
from foliot.testing.rows import make_worker
from foliot.testing.web import Client, client_of

LANES = sql("select id from foliot.lanes")
REFUSED = Failure(ErrorType.CONNECTION, "connection to Mail.example refused")


class Shop:
    """Two jobs, and executions of theirs in every state."""

    def __init__(self, database: Database) -> None:
        self.client = client_of(database)
        self._database = database
        self.ids: dict[str, str] = {}

    async def open(self) -> None:
        for name, handler in (("bill", "bills"), ("mail", "mails")):
            body = {"name": name, "target": {"type": "HANDLER", "name": handler}}
            assert (await self.client.post("/v1/jobs", body)).status == 201
        call = {"name": "call", "target": {"type": "HTTP", "url": "https://example.com/bills"}}
        assert (await self.client.post("/v1/jobs", call)).status == 201
        worker = await make_worker(self._database, handlers=["bills", "mails"])
        now = await read_clock(self._database)
        for name, job, event, took_seconds in (
            ("quick", "bill", Event.SUCCEED, 0.01),
            ("slow", "bill", Event.SUCCEED, 2.0),
            ("failed", "mail", Event.FAIL, 0.5),
            ("retrying", "mail", Event.RETRY, 0.5),
            ("running", "mail", None, 0.0),
        ):
            await self._enqueue(name, job)
            lanes = [row["id"] for row in await self._database.fetch(LANES)]
            request = ClaimRequest(worker, "default", lanes, 1, Look.EVERYWHERE)
            (held,) = await claim(self._database, request, now)
            assert str(held.execution_id) == self.ids[name]
            if event is not None:
                outcome = Outcome(
                    held.execution_id,
                    held.fence,
                    event,
                    failure=None if event is Event.SUCCEED else REFUSED,
                    started_at=now - timedelta(seconds=took_seconds),
                    delay_seconds=3600.0,
                )
                await finish(self._database, worker, [outcome], now)
        await self._enqueue("waiting", "bill")
        await self._enqueue("called", "call")

    async def _enqueue(self, name: str, job: str) -> None:
        made = await self.client.post("/v1/executions", {"job": job})
        self.ids[name] = made.body["execution_id"]

    async def found(self, **query: object) -> set[str]:
        answer = await self.client.get("/v1/executions", count="true", **query)
        assert answer.status == 200, answer.body
        names = {id_: name for name, id_ in self.ids.items()}
        shown = [names[item["execution_id"]] for item in answer.body["items"]]
        assert answer.body["total"] == len(shown) == len(set(shown))
        return set(shown)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"handler": "bills"}, {"quick", "slow", "waiting"}),
        ({"handler": "mails"}, {"failed", "retrying", "running"}),
        ({"handler": "https://example.com/bills"}, set()),
        ({"error": "mail.EXAMPLE"}, {"failed", "retrying"}),
        ({"error": "connection"}, {"failed", "retrying"}),
        ({"error": "100%"}, set()),
        ({"retried": "true"}, {"retrying"}),
        ({"retried": "false", "handler": "mails"}, {"failed", "running"}),
        ({"min_duration_ms": "2000"}, {"slow"}),
        ({"min_duration_ms": "0.5"}, {"quick", "slow", "failed", "running"}),
        ({"error": "refused", "status": "FAILED"}, {"failed"}),
    ],
)
async def test_executions_are_found_by(
    database: Database, query: dict[str, object], expected: set[str]
) -> None:
    shop = Shop(database)
    await shop.open()
    assert await shop.found(**query) == expected


async def test_the_same_of_one_job(database: Database) -> None:
    shop = Shop(database)
    await shop.open()
    job = (await shop.client.get("/v1/jobs", name="mail")).body["items"][0]["job_id"]
    answer = await shop.client.get(f"/v1/jobs/{job}/executions", error="refused", count="true")
    assert answer.body["total"] == 2
    found = {item["execution_id"] for item in answer.body["items"]}
    assert found == {shop.ids["failed"], shop.ids["retrying"]}


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"retried": "perhaps"}, "retried"),
        ({"min_duration_ms": "-1"}, "min_duration_ms"),
        ({"min_duration_ms": "long"}, "min_duration_ms"),
        ({"min_duration_ms": "nan"}, "min_duration_ms"),
        ({"error": ""}, "error"),
    ],
)
async def test_what_cannot_be_meant_is_refused_by_name(
    database: Database, query: dict[str, object], field: str
) -> None:
    refused = await client_of(database).get("/v1/executions", **query)
    assert refused.code == (400, "VALIDATION_ERROR")
    assert refused.error["details"][0]["field"] == field


@pytest.fixture
def client(database: Database) -> Client:
    return client_of(database)


async def test_every_list_can_be_counted(client: Client, database: Database) -> None:
    job = (await client.post("/v1/jobs", {"name": "bill"})).body["job_id"]
    await client.patch(f"/v1/jobs/{job}", {"description": "x"})
    await make_worker(database)
    made = await client.post("/v1/executions", {"job": "bill"})
    paths = {
        "/v1/jobs": 1,
        f"/v1/jobs/{job}/versions": 2,
        f"/v1/jobs/{job}/executions": 1,
        "/v1/executions": 1,
        f"/v1/executions/{made.body['execution_id']}/logs": 0,
        "/v1/workers": 1,
    }
    for path, total in paths.items():
        answer = await client.get(path, count="true", limit=1)
        assert answer.body["total"] == total, path


async def test_a_page_looks_at_so_much_and_the_next_goes_on(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is rare among many is found, and no request takes longer than another."""
    monkeypatch.setattr(execution_rows, "SCANNED", (2, 4))
    await client.post("/v1/jobs", {"name": "rare"})
    await client.post("/v1/jobs", {"name": "usual"})
    wanted = (await client.post("/v1/executions", {"job": "rare"})).body["execution_id"]
    for _ in range(15):
        await client.post("/v1/executions", {"job": "usual"})
    found: list[str] = []
    cursor: dict[str, str] = {}
    pages = 0
    while True:
        page = (await client.get("/v1/executions", handler="rare", limit=3, **cursor)).body
        found += [item["execution_id"] for item in page["items"]]
        pages += 1
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert found == [wanted]
    assert pages >= 3
