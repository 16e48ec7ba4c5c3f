"""`/v1/executions/{id}/explain`: to whom it is told, and what the execution says meanwhile."""

from uuid import uuid4

import pytest

from foliot.store.database import Database
from foliot.testing.rows import make_tenant
from foliot.testing.web import Client, client_of


@pytest.fixture
def client(database: Database) -> Client:
    return client_of(database)


async def enqueue(client: Client, **fields: object) -> str:
    await client.post("/v1/jobs", {"name": "mail"})
    made = await client.post("/v1/executions", {"job": "mail", **fields})
    return str(made.body["execution_id"])


async def test_what_nobody_can_run_stays_queued_and_says_so(client: Client) -> None:
    execution = await enqueue(client)
    before = (await client.get(f"/v1/executions/{execution}")).body
    told = (await client.get(f"/v1/executions/{execution}/explain")).body
    assert set(told) == {"execution_id", "status", "summary", "blockers"}
    assert (told["execution_id"], told["status"]) == (execution, "QUEUED")
    assert told["summary"] == "It is not running: no worker is running."
    (blocker,) = told["blockers"]
    assert blocker == {
        "code": "NO_WORKER",
        "message": "no worker is running",
        "way_out": "start one: foliot worker run",
        "until": None,
        "details": {
            "missing": "WORKER",
            "workers": 0,
            "silent": 0,
            "draining": 0,
            "queue": "default",
            "region": None,
            "requires": [],
            "target_type": "HANDLER",
            "handler": "mail",
        },
    }
    assert (await client.get(f"/v1/executions/{execution}")).body == before


async def test_an_unknown_one_and_another_tenants_are_not_found(
    client: Client, database: Database
) -> None:
    execution = await enqueue(client)
    other = Client(client.app, {**client.headers, "x-tenant-id": str(await make_tenant(database))})
    for who, asked in (
        (other, execution),
        (client, str(uuid4())),
        (client, "ffffffff-ffff-8fff-bfff-ffffffffffff"),
        (client, "nothing"),
        (client, "%00"),
    ):
        answer = await who.get(f"/v1/executions/{asked}/explain")
        assert answer.code == (404, "EXECUTION_NOT_FOUND"), asked


async def test_one_that_was_cancelled_before_it_began(client: Client) -> None:
    execution = await enqueue(client, delay_seconds=3600)
    told = (await client.get(f"/v1/executions/{execution}/explain")).body
    assert [each["code"] for each in told["blockers"]] == ["NOT_DUE", "NOT_RELEASED", "NO_WORKER"]
    assert told["summary"].endswith("; 2 more reasons below.")
    await client.post(f"/v1/executions/{execution}/cancel", {"reason": "no longer wanted"})
    told = (await client.get(f"/v1/executions/{execution}/explain")).body
    assert (told["status"], told["blockers"][0]["code"]) == ("CANCELLED", "FINISHED")
    assert "no longer wanted" in told["summary"]
