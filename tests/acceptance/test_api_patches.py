"""A wrong or empty value in a request is refused by its own name, and nothing is lost by it."""

from typing import Any

import pytest

from foliot.store.database import Database
from foliot.testing.web import Client, client_of

JOB = {"name": "report", "schedule": "0 9 * * *", "target": {"type": "HANDLER", "name": "report"}}


@pytest.fixture
def client(database: Database) -> Client:
    return client_of(database)


@pytest.mark.parametrize("part", ["schedule", "target"])
async def test_what_a_job_cannot_be_without_is_not_unset(client: Client, part: str) -> None:
    """A client that sends null for all that it does not change must not stop the job."""
    made = (await client.post("/v1/jobs", JOB)).body
    path = f"/v1/jobs/{made['job_id']}"
    refused = await client.patch(path, {"description": "daily", part: None})
    assert refused.code == (400, "VALIDATION_ERROR")
    assert refused.error["details"][0]["field"] == part
    assert refused.error["hint"]
    assert (await client.get(path)).body == made


async def test_what_has_a_default_is_set_back_to_it(client: Client) -> None:
    job = JOB | {"callback_url": "https://example.com/x", "priority": 1}
    made = (await client.post("/v1/jobs", job)).body
    patched = await client.patch(
        f"/v1/jobs/{made['job_id']}", {"callback_url": None, "priority": None}
    )
    assert (patched.body["callback_url"], patched.body["priority"]) == (None, 5)


async def test_a_status_is_changed_by_itself(client: Client) -> None:
    made = (await client.post("/v1/jobs", JOB)).body
    both = {"status": "PAUSED", "description": "y"}
    refused = await client.patch(f"/v1/jobs/{made['job_id']}", both)
    assert refused.code == (400, "VALIDATION_ERROR")
    assert refused.error["details"][0]["field"] == "status"
    assert "description" in refused.error["hint"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"target": {"type": "HTTP", "url": "nowhere"}}, "target.url"),
        ({"target": {"type": "HTTP"}}, "target.url"),
        ({"target": {"type": "HANDLER", "name": "x", "url": "y"}}, "target.url"),
        ({"execution": "https://example.com"}, "execution"),
        ({"retry_config": 3}, "retry_config"),
        ({"type": 5}, "type"),
        ({"schedule": {"type": "AFTER", "after": {"jobs": ["nobody"]}}}, "after.jobs"),
    ],
)
async def test_an_error_names_the_field_as_it_was_written(
    client: Client, change: dict[str, Any], field: str
) -> None:
    kept = {name: value for name, value in JOB.items() if name not in change}
    if change.keys() & {"execution", "type"}:
        kept = {"name": "report"}
    refused = await client.post("/v1/jobs", kept | change)
    assert refused.status == 400
    detail = refused.error["details"][0]
    assert detail["field"] == field
    assert detail["message"] != "there is no such field" or field == "target.url"
    assert "did you mean" not in (detail["hint"] or "")
