"""What is wrong with a request is said before anything is asked of the database."""

from typing import Any

import pytest

from foliot.store.database import Database
from foliot.testing.web import Client, client_of

HOURLY = {"schedule": {"type": "interval", "interval_seconds": 3600}}


@pytest.fixture
def client() -> Client:
    """Of a database that is not there: whatever needs it is answered 503."""
    return client_of(Database("postgresql://127.0.0.1:1/nowhere"))


async def test_what_is_right_would_go_to_the_database(client: Client) -> None:
    away = await client.post("/v1/jobs", {"name": "report", **HOURLY})
    assert away.code == (503, "SCHEDULER_UNAVAILABLE")
    assert away.headers["retry-after"] == "1"
    assert "127.0.0.1" not in str(away.body)


@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        ({"schedule": "61 * * * *"}, "INVALID_CRON", "cron_expression"),
        ({"schedule": "0 0 31 2 *"}, "INVALID_CRON", "cron_expression"),
        ({"schedule": "0 9 * * *", "timezone": "Mars/Base"}, "INVALID_TIMEZONE", "timezone"),
        ({"schedule": {"type": "CRON"}}, "INVALID_SCHEDULE", "cron_expression"),
        ({"schedule": {"type": "INTERVAL", "interval_seconds": 0}}, "INVALID_SCHEDULE", None),
        (
            {"schedule": {"type": "MANUAL", "run_at": "2027-01-01T00:00:00Z"}},
            "INVALID_SCHEDULE",
            "run_at",
        ),
        (
            {"schedule": {"run_at": "2027-01-01T00:00:00", "timezone": "Asia/Tokyo"}},
            "INVALID_SCHEDULE",
            "run_at",
        ),
        ({"schedule": {"type": "sometimes"}}, "VALIDATION_ERROR", "schedule.type"),
        ({"schedule": {"run_at": 1708956600}}, "VALIDATION_ERROR", "schedule.run_at"),
        ({"schedule": 7}, "VALIDATION_ERROR", "schedule"),
        ({"schedule": {"cron": "* * * * *"}}, "VALIDATION_ERROR", "schedule.cron"),
        ({"priority": 11}, "VALIDATION_ERROR", "priority"),
        ({"priority": True}, "VALIDATION_ERROR", "priority"),
        ({"timeout_seconds": "5"}, "VALIDATION_ERROR", "timeout_seconds"),
        ({"timeout_seconds": 0}, "VALIDATION_ERROR", "timeout_seconds"),
        ({"queue": ""}, "VALIDATION_ERROR", "queue"),
        ({"queue": "a\0b"}, "VALIDATION_ERROR", "queue"),
        ({"name": "a\0b"}, "VALIDATION_ERROR", "name"),
        ({"job_type": "a\ud800"}, "VALIDATION_ERROR", None),
        ({"tags": "daily"}, "VALIDATION_ERROR", "tags"),
        ({"labels": {"a": 1}}, "VALIDATION_ERROR", "labels.a"),
        ({"target": {"type": "HTTP"}}, "VALIDATION_ERROR", None),
        ({"target": {"url": "ftp://a"}}, "VALIDATION_ERROR", None),
        ({"target": {"type": "SHELL", "name": "x"}}, "VALIDATION_ERROR", "target"),
        ({"target": []}, "VALIDATION_ERROR", "target"),
        ({"callback_url": "nowhere"}, "VALIDATION_ERROR", "callback_url"),
        ({"retry_policy": {"max_attempts": 0}}, "VALIDATION_ERROR", "retry_policy.max_attempts"),
        ({"retry_policy": {"backoff": "wild"}}, "VALIDATION_ERROR", "retry_policy.backoff"),
        ({"concurrency": {"key": "a"}}, "VALIDATION_ERROR", "concurrency.limit"),
        ({"concurrency": {"key": "${x", "limit": 1}}, "VALIDATION_ERROR", "concurrency.key"),
        ({"rate_limit": {"count": 1}}, "VALIDATION_ERROR", "rate_limit.period_seconds"),
        ({"payload": {"a": "\0"}}, "VALIDATION_ERROR", "payload.a"),
        ({"payload": float("nan")}, "VALIDATION_ERROR", "payload"),
        ({"status": "ACTIVE"}, "VALIDATION_ERROR", "status"),
        ({"job_id": "x"}, "VALIDATION_ERROR", "job_id"),
        ({"version": 3}, "VALIDATION_ERROR", "version"),
        ({"cron_expresion": "x"}, "VALIDATION_ERROR", "cron_expresion"),
    ],
)
async def test_what_cannot_be_kept_is_refused_by_name(
    client: Client, changes: dict[str, Any], code: str, field: str | None
) -> None:
    body = {"name": "report", **({} if "schedule" in changes else HOURLY), **changes}
    refused = await client.post("/v1/jobs", body)
    assert refused.code == (400, code), refused.body
    if field is not None:
        assert refused.error["details"][0]["field"] == field


async def test_a_misspelt_field_is_told_with_what_was_meant(client: Client) -> None:
    refused = await client.post("/v1/jobs", {"name": "a", "cron_expresion": "0 9 * * *"})
    assert refused.error["hint"] == "did you mean cron_expression?"
    inside = await client.post("/v1/jobs", {"name": "a", "schedule": {"cron_expresion": "x"}})
    assert inside.error["details"] == [
        {
            "field": "schedule.cron_expresion",
            "message": "there is no such field",
            "hint": "did you mean cron_expression?",
        }
    ]


async def test_a_payload_has_a_limit(client: Client) -> None:
    refused = await client.post("/v1/jobs", {"name": "a", **HOURLY, "payload": "x" * 1_100_000})
    assert refused.code == (413, "PAYLOAD_TOO_LARGE")
    assert refused.error["details"][0]["field"] == "payload"
    refused = await client.post("/v1/jobs", b"[" + b" " * 9_000_000 + b"]")
    assert refused.code == (413, "PAYLOAD_TOO_LARGE")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "the body is not JSON"),
        (b"\xff", "error parsing"),
        (b"[" * 100_000, "error parsing"),
        (b"[]", "dictionary"),
        (b"null", "body"),
        (b'"x"', "dictionary"),
    ],
)
async def test_a_body_that_is_no_object_is_refused(client: Client, body: bytes, words: str) -> None:
    refused = await client.post("/v1/jobs", body)
    assert refused.code == (400, "VALIDATION_ERROR")
    assert words in refused.error["message"]


async def test_a_form_is_told_to_be_json(client: Client) -> None:
    form = {"content_type": "application/x-www-form-urlencoded"}
    refused = await client.post("/v1/jobs", b'{"name": "a"}', **form)
    assert refused.code == (400, "VALIDATION_ERROR")
    assert "Content-Type: application/json" in refused.error["hint"]
