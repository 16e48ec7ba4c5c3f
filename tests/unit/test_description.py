"""The OpenAPI document tells of the API that is there."""

from typing import Any

from foliot.store.database import Database
from foliot.testing.web import client_of

# Everything that can be asked so far.
OPERATIONS = {
    "GET /livez",
    "GET /readyz",
    "GET /metrics",
    "POST /v1/jobs",
    "GET /v1/jobs",
    "GET /v1/jobs/{job_id}",
    "PUT /v1/jobs/{job_id}",
    "PATCH /v1/jobs/{job_id}",
    "DELETE /v1/jobs/{job_id}",
    "POST /v1/jobs/{job_id}/pause",
    "PATCH /v1/jobs/{job_id}/pause",
    "POST /v1/jobs/{job_id}/resume",
    "PATCH /v1/jobs/{job_id}/resume",
    "POST /v1/jobs/{job_id}/trigger",
    "GET /v1/jobs/{job_id}/executions",
    "GET /v1/jobs/{job_id}/versions",
    "GET /v1/jobs/{job_id}/next",
    "POST /v1/executions",
    "GET /v1/executions",
    "POST /v1/executions/bulk",
    "GET /v1/executions/{execution_id}",
    "GET /v1/executions/{execution_id}/explain",
    "GET /v1/executions/{execution_id}/logs",
    "POST /v1/executions/{execution_id}/cancel",
    "POST /v1/executions/{execution_id}/retry",
    "GET /v1/dead-letters",
    "GET /v1/dead-letters/groups",
    "POST /v1/dead-letters/replay",
    "GET /v1/dead-letters/{letter_id}",
    "DELETE /v1/dead-letters/{letter_id}",
    "POST /v1/dead-letters/{letter_id}/replay",
    "POST /v1/executions/{execution_id}/progress",
    "POST /v1/executions/{execution_id}/complete",
    "POST /v1/executions/{execution_id}/fail",
    "GET /v1/executions/{execution_id}/deliveries",
    "POST /v1/executions/{execution_id}/deliveries/redeliver",
    "GET /v1/signing-keys",
    "POST /v1/signing-keys/rotate",
    "POST /v1/schedules/preview",
    "POST /v1/secrets",
    "GET /v1/secrets",
    "PUT /v1/secrets/{name}",
    "GET /v1/secrets/{name}",
    "DELETE /v1/secrets/{name}",
    "POST /v1/ledger/verify",
    "GET /v1/queues",
    "GET /v1/queues/{name}",
    "PATCH /v1/queues/{name}",
    "POST /v1/queues/{name}/pause",
    "POST /v1/queues/{name}/resume",
    "GET /v1/workers",
    "GET /v1/schedulers",
}


async def document() -> dict[str, Any]:
    client = client_of(Database("postgresql://127.0.0.1:1/nowhere"))
    found: dict[str, Any] = (await client.get("/openapi.json")).body
    return found


async def test_every_operation_is_in_it_with_the_contracts_errors_and_a_key() -> None:
    told = await document()
    assert told["openapi"].startswith("3.1.")
    found = set()
    for path, operations in told["paths"].items():
        for method, operation in operations.items():
            found.add(f"{method.upper()} {path}")
            if path.startswith("/v1"):
                assert operation["security"] == [{"key": []}]
                assert "422" not in operation["responses"]
                assert "default" in operation["responses"]
    assert found == OPERATIONS


async def test_every_reference_leads_somewhere() -> None:
    told = await document()

    def references(value: object) -> set[str]:
        if isinstance(value, dict):
            own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
            return own.union(*map(references, value.values()))
        return set().union(*map(references, value)) if isinstance(value, list) else set()

    for reference in references(told):
        place: Any = told
        for part in reference.removeprefix("#/").split("/"):
            place = place[part]


async def test_a_job_is_described_with_its_words_and_bounds() -> None:
    schemas = (await document())["components"]["schemas"]
    assert schemas["JobBody"]["additionalProperties"] is False
    assert schemas["ScheduleType"]["enum"][0] == "CRON"


async def test_requests_are_counted_by_their_pattern() -> None:
    client = client_of(Database("postgresql://127.0.0.1:1/nowhere"))
    await client.get("/v1/jobs/some-id")
    await client.send("BREW", "/v1/nothing")
    lines = (await client.get("/metrics")).body.splitlines()
    counted = [line for line in lines if line.startswith("foliot_api_requests_total")]
    pattern = 'method="GET",route="/v1/jobs/{job_id}",status="404"'
    assert [line for line in counted if pattern in line]
    assert [line for line in counted if 'method="other",route="none"' in line]
    assert "some-id" not in str(lines)
