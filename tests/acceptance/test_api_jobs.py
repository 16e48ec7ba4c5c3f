"""`/v1/jobs`: made, read, changed by those who have seen it, paused, deleted."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from foliot.store.database import Database
from foliot.testing.rows import make_tenant
from foliot.testing.web import KEY, Answer, Client, client_of

HOURLY = {"schedule": {"type": "interval", "interval_seconds": 3600}}
CONTRACT = {
    "job_id",
    "tenant_id",
    "name",
    "description",
    "status",
    "version",
    "created_by",
    "managed_by",
    "status_note",
    "schedule",
    "target",
    "payload",
    "retry_policy",
    "timeout_seconds",
    "cancel_grace_seconds",
    "start_deadline_seconds",
    "priority",
    "queue",
    "requires",
    "region",
    "concurrency",
    "rate_limit",
    "dead_letter",
    "callback_url",
    "tags",
    "labels",
    "next_run_at",
    "last_run_at",
    "stats",
    "created_at",
    "updated_at",
}


@pytest.fixture
def client(database: Database) -> Client:
    return client_of(database)


async def create(client: Client, name: str = "report", **changes: object) -> dict[str, Any]:
    made = await client.post("/v1/jobs", {"name": name, **HOURLY, **changes})
    assert made.status == 201, made.body
    body: dict[str, Any] = made.body
    return body


async def test_a_new_job_has_every_field_a_version_and_an_address(client: Client) -> None:
    made = await client.post("/v1/jobs", {"name": "report", **HOURLY})
    assert made.body.keys() == CONTRACT
    assert made.headers["etag"] == '"1"'
    assert made.headers["location"] == f"/v1/jobs/{made.body['job_id']}"
    assert (made.body["created_by"], made.body["managed_by"]) == ("operator", "api")
    assert made.body["stats"] == {
        "total_runs": None,
        "success_rate": None,
        "avg_duration_ms": None,
        "p95_duration_ms": None,
        "last_status": None,
    }
    read = await client.get(made.headers["location"])
    assert (read.status, read.body, read.headers["etag"]) == (200, made.body, '"1"')


async def test_a_name_is_taken_once(client: Client) -> None:
    await create(client)
    second = await client.post("/v1/jobs", {"name": "report", **HOURLY})
    assert second.code == (409, "JOB_ALREADY_EXISTS")


async def test_only_a_job_that_runs_once_may_go_without_a_name(client: Client) -> None:
    once = await client.post("/v1/jobs", {"job_type": "mail", "delay_seconds": 60})
    assert once.body["name"].startswith("mail-")
    often = await client.post("/v1/jobs", {"job_type": "mail", "interval_seconds": 60})
    assert often.code == (400, "VALIDATION_ERROR")
    assert often.error["details"][0]["field"] == "name"


async def test_a_schedule_follows_only_jobs_that_are_there(client: Client) -> None:
    refused = await client.post("/v1/jobs", {"name": "a", "schedule": {"after": {"jobs": ["b"]}}})
    assert refused.code == (400, "INVALID_SCHEDULE")
    assert refused.error["details"][0]["field"] == "after.jobs"


async def test_a_schedule_may_follow_jobs_by_name(client: Client) -> None:
    parent = await create(client)
    child = await create(
        client, "child", schedule={"after": {"jobs": ["report"], "on": "finished"}}
    )
    assert child["schedule"]["type"] == "AFTER"
    assert child["schedule"]["after"] == {
        "jobs": [parent["job_id"]],
        "mode": "ALL",
        "on": "FINISHED",
    }


async def test_a_patch_changes_what_it_names_and_nothing_else(client: Client) -> None:
    job = await create(client, payload={"a": {"b": 1}}, labels={"x": "1"}, tags=["t"])
    path = f"/v1/jobs/{job['job_id']}"
    patch = {"schedule": {"misfire_policy": "skip"}, "payload": {"c": 2}, "priority": "low"}
    changed = await client.patch(path, patch)
    assert (changed.status, changed.headers["etag"]) == (200, '"2"')
    expected = job | {
        "payload": {"c": 2},
        "priority": 8,
        "version": 2,
        "schedule": job["schedule"] | {"misfire_policy": "SKIP"},
        "updated_at": changed.body["updated_at"],
        "next_run_at": changed.body["next_run_at"],
    }
    assert changed.body == expected


async def test_patches_that_come_at_once_are_all_made(client: Client) -> None:
    job = await create(client)
    path = f"/v1/jobs/{job['job_id']}"
    patches: list[dict[str, Any]] = [
        {"priority": 1},
        {"description": "d"},
        {"queue": "q"},
        {"labels": {"a": "b"}},
    ]
    answers = await asyncio.gather(*(client.patch(path, patch) for patch in patches))
    assert [answer.status for answer in answers] == [200] * 4
    changed = (await client.get(path)).body
    assert changed["version"] == 5
    for patch in patches:
        assert {name: changed[name] for name in patch} == patch


async def test_null_in_a_patch_is_the_default(client: Client) -> None:
    job = await create(client, priority=1, description="x", callback_url="https://a.example")
    patch = {"priority": None, "description": None, "callback_url": None, "payload": None}
    changed = await client.patch(f"/v1/jobs/{job['job_id']}", patch)
    found = [changed.body[name] for name in patch]
    assert found == [5, "", None, None]


async def test_another_type_of_schedule_or_target_begins_anew(client: Client) -> None:
    job = await create(client, schedule={"cron_expression": "0 9 * * *", "max_runs": 3})
    path = f"/v1/jobs/{job['job_id']}"
    patch = {
        "schedule": {"type": "ONE_TIME", "run_at": "2030-01-01T00:00:00Z"},
        "target": {"type": "http", "url": "https://a.example"},
    }
    changed = await client.patch(path, patch)
    assert changed.status == 200, changed.body
    schedule = changed.body["schedule"]
    assert (schedule["cron_expression"], schedule["max_runs"]) == (None, None)
    assert changed.body["next_run_at"] == "2030-01-01T00:00:00Z"
    assert changed.body["target"]["type"] == "HTTP"


async def test_a_put_needs_to_say_what_it_has_seen(client: Client) -> None:
    job = await create(client)
    path = f"/v1/jobs/{job['job_id']}"
    blind = await client.put(path, {"name": "report", **HOURLY})
    assert blind.code == (428, "VERSION_REQUIRED")
    replaced = await client.put(path, {"name": "other", **HOURLY}, if_match='"1"')
    assert (replaced.status, replaced.body["name"], replaced.body["version"]) == (200, "other", 2)
    stale = await client.put(path, {"name": "third", **HOURLY}, if_match='"1"')
    assert stale.code == (409, "VERSION_CONFLICT")
    by_body = await client.put(path, replaced.body | {"description": "as read, and changed"})
    assert (by_body.status, by_body.body["version"]) == (200, 3)
    assert by_body.body["description"] == "as read, and changed"


@pytest.mark.parametrize("tag", ["2", "nonsense", '"x"', '"0"'])
async def test_a_version_that_is_none_or_another_is_refused(client: Client, tag: str) -> None:
    job = await create(client)
    path = f"/v1/jobs/{job['job_id']}"
    for answer in (
        await client.patch(path, {"priority": 1}, if_match=tag),
        await client.patch(path, {"status": "paused"}, if_match=tag),
        await client.post(f"{path}/pause", if_match=tag),
        await client.delete(path, if_match=tag),
    ):
        assert answer.status in (400, 409)
    assert (await client.get(path)).body == job


async def test_a_pause_keeps_its_note_until_the_job_goes_on(client: Client) -> None:
    job = await create(client)
    path = f"/v1/jobs/{job['job_id']}"
    paused = await client.post(f"{path}/pause", {"note": "moving house"})
    assert (paused.body["status"], paused.body["status_note"]) == ("PAUSED", "moving house")
    resumed = await client.post(f"{path}/resume")
    assert (resumed.body["status"], resumed.body["status_note"]) == ("ACTIVE", None)


async def test_a_job_that_is_over_can_be_triggered_and_not_paused(client: Client) -> None:
    job = await create(
        client, schedule={"run_at": "2024-01-01T00:00:00Z", "misfire_grace_seconds": 1}
    )
    path = f"/v1/jobs/{job['job_id']}"
    paused = await client.post(f"{path}/pause")
    assert paused.code == (400, "VALIDATION_ERROR")
    assert (await client.post(f"{path}/trigger")).status == 202


@pytest.mark.parametrize(
    "body",
    [
        {"status": "DELETED"},
        {"status": "COMPLETED"},
        {"status": "x"},
        {"status": "paused", "name": "b"},
    ],
)
async def test_a_status_is_changed_by_itself_to_one_of_two(
    client: Client, body: dict[str, Any]
) -> None:
    job = await create(client)
    refused = await client.patch(f"/v1/jobs/{job['job_id']}", body)
    assert refused.code == (400, "VALIDATION_ERROR")


async def test_a_deleted_job_is_gone_and_what_it_did_stays(client: Client) -> None:
    job = await create(client)
    path = f"/v1/jobs/{job['job_id']}"
    waiting = (await client.post(f"{path}/trigger")).body["execution_id"]
    deleted = await client.delete(path)
    assert (deleted.status, deleted.body["status"]) == (200, "DELETED")
    assert (deleted.body["version"], deleted.body["next_run_at"]) == (2, None)
    for answer in (
        await client.get(path),
        await client.delete(path),
        await client.patch(path, {"priority": 1}),
        await client.post(f"{path}/trigger"),
        await client.get(f"{path}/next"),
    ):
        assert answer.code == (404, "JOB_NOT_FOUND")
    (kept,) = (await client.get(f"{path}/executions")).body["items"]
    assert (kept["execution_id"], kept["status"]) == (waiting, "CANCELLED")
    assert [each["version"] for each in (await client.get(f"{path}/versions")).body["items"]] == [
        2,
        1,
    ]
    assert (await create(client))["job_id"] != job["job_id"]


async def test_versions_are_read_newest_first_with_who_and_when(client: Client) -> None:
    job = await create(client)
    path = f"/v1/jobs/{job['job_id']}"
    await client.patch(path, {"description": "second"})
    await client.post(f"{path}/pause", {"note": "why"})
    first = await client.get(f"{path}/versions", limit=2)
    assert [
        (each["version"], each["status"], each["description"]) for each in first.body["items"]
    ] == [
        (3, "PAUSED", "second"),
        (2, "ACTIVE", "second"),
    ]
    assert first.body["items"][0]["changed_by"] == "operator"
    assert first.body["items"][0]["status_note"] == "why"
    rest = await client.get(f"{path}/versions", limit=2, cursor=first.body["next_cursor"])
    assert [each["version"] for each in rest.body["items"]] == [1]
    assert rest.body["next_cursor"] is None


async def test_the_next_fires_are_told_in_the_jobs_own_time(client: Client) -> None:
    job = await create(client, schedule="30 9 * * *", timezone="Asia/Kolkata")
    told = await client.get(f"/v1/jobs/{job['job_id']}/next", count=2)
    assert told.body["description"] == "every day at 09:30, Kolkata time"
    assert [fire["at"][11:] for fire in told.body["fires"]] == ["04:00:00Z", "04:00:00Z"]
    assert told.body["fires"][0]["local"].endswith("T09:30:00+05:30")
    assert told.body["fires"][0]["at"] == job["next_run_at"]
    await client.post(f"/v1/jobs/{job['job_id']}/pause")
    paused = await client.get(f"/v1/jobs/{job['job_id']}/next", count=2)
    assert paused.body == told.body
    for count in (0, 1001, "x"):
        refused = await client.get(f"/v1/jobs/{job['job_id']}/next", count=count)
        assert refused.code == (400, "VALIDATION_ERROR")


async def everything(client: Client, job_id: str) -> list[Answer]:
    path = f"/v1/jobs/{job_id}"
    return [
        await client.get(path),
        await client.put(path, {"name": "x", **HOURLY, "version": 1}),
        await client.patch(path, {"priority": 1}),
        await client.patch(path, {"status": "paused"}),
        await client.delete(path),
        await client.post(f"{path}/pause"),
        await client.post(f"{path}/resume"),
        await client.post(f"{path}/trigger", {}),
        await client.get(f"{path}/executions"),
        await client.get(f"{path}/versions"),
        await client.get(f"{path}/next"),
    ]


async def test_a_job_of_another_tenant_is_as_unknown_as_one_that_never_was(
    client: Client, database: Database
) -> None:
    job = await create(client)
    other = await make_tenant(database)
    stranger = Client(client.app, {"authorization": f"Bearer {KEY}", "x-tenant-id": str(other)})
    unknown = str(uuid4())
    for theirs, nobodys, nonsense in zip(
        await everything(stranger, job["job_id"]),
        await everything(stranger, unknown),
        await everything(stranger, "nonsense"),
        strict=True,
    ):
        assert theirs.code == (404, "JOB_NOT_FOUND")
        assert nonsense.code == (404, "JOB_NOT_FOUND")
        said = theirs.error | {"request_id": ""}
        said["message"] = said["message"].replace(job["job_id"], unknown)
        assert said == nobodys.error | {"request_id": ""}
    assert (await stranger.get("/v1/jobs")).body["items"] == []
    assert (await create(stranger))["tenant_id"] == str(other)
    assert (await client.get(f"/v1/jobs/{job['job_id']}")).body == job
