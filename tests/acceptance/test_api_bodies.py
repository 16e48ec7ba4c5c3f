"""Jobs as people already write them for other schedulers work as they stand."""

from typing import Any

import pytest

from foliot.store.database import Database
from foliot.testing.web import client_of

REPORT_BY_ENDPOINT = {
    "name": "daily-report-generator",
    "job_type": "CRON",
    "cron_expression": "0 9 * * *",
    "timezone": "America/New_York",
    "payload": {
        "endpoint": "https://api.example.com/reports/generate",
        "method": "POST",
        "headers": {"Authorization": "Bearer ${secrets.API_TOKEN}"},
        "body": {"report_type": "daily_summary"},
    },
    "retry_config": {"max_attempts": 3, "backoff_seconds": 300, "backoff_multiplier": 2},
    "timeout_seconds": 3600,
    "tags": ["reports", "daily"],
}
REPORT_BY_NAME = {
    "name": "send_report",
    "schedule": "0 9 * * *",
    "payload": {"report_type": "sales"},
    "timeout_seconds": 3600,
    "max_attempts": 3,
    "priority": 5,
}
REPORT_WITH_POLICY = {
    "name": "send_daily_report",
    "schedule": "0 9 * * *",
    "payload": {"report_type": "sales"},
    "retry_policy": {"max_attempts": 3, "backoff": "exponential"},
}
REPORT_BY_EXECUTION = {
    "name": "Daily Sales Report",
    "description": "Generate and email daily sales report",
    "schedule": {
        "type": "CRON",
        "cron_expression": "0 10 * * *",
        "timezone": "America/New_York",
    },
    "execution": {
        "callback_url": "https://reports.internal/api/generate",
        "method": "POST",
        "headers": {"X-API-Key": "secret123"},
        "payload": {"report_type": "daily_sales", "format": "pdf"},
        "timeout_seconds": 600,
    },
    "retry_policy": {
        "max_retries": 3,
        "backoff": "EXPONENTIAL",
        "initial_delay_ms": 1000,
        "max_delay_ms": 60000,
    },
    "priority": 3,
    "tags": ["reporting", "finance"],
}
MAIL_BY_TYPE = {
    "job_type": "send_email",
    "schedule_time": "2024-02-26 15:30:00",
    "priority": 5,
    "execution_params": {"user_id": "user_001"},
}
MAIL_IN_FULL = {
    "job_type": "send_email",
    "schedule_time": "2024-02-26 15:30:00",
    "priority": 5,
    "execution_params": {
        "user_id": "user_001",
        "email_template": "booking_confirmation",
        "data": {},
    },
    "max_retries": 3,
    "retry_backoff": "exponential",
    "timeout_seconds": 300,
}
BILLING = {
    "name": "monthly_billing_report",
    "type": "one_time",
    "scheduled_at": "2024-02-22T18:00:00Z",
    "payload": {"report_type": "billing", "month": "2024-01"},
    "callback_url": "https://billing.internal/webhook",
    "priority": "critical",
    "timeout_seconds": 300,
    "max_retries": 3,
    "retry_backoff": "exponential",
    "idempotency_key": "billing-2024-01",
    "tags": ["billing", "monthly"],
}
PIPELINE = {
    "name": "hourly_etl_pipeline",
    "type": "recurring",
    "cron": "0 * * * *",
    "payload": {"pipeline": "user_events"},
    "priority": "high",
    "timeout_seconds": 3600,
    "max_retries": 2,
}
NIGHTLY = {"name": "data_pipeline", "schedule_pattern": "0 2 * * *"}

ANSWERS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        REPORT_BY_ENDPOINT,
        {
            "schedule.type": "CRON",
            "schedule.cron_expression": "0 9 * * *",
            "schedule.timezone": "America/New_York",
            "target.type": "HTTP",
            "target.url": "https://api.example.com/reports/generate",
            "target.headers": {"Authorization": "Bearer ${secrets.API_TOKEN}"},
            "payload": {"report_type": "daily_summary"},
            "retry_policy.max_attempts": 3,
            "retry_policy.initial_delay_seconds": 300,
            "retry_policy.max_delay_seconds": 3600,
            "timeout_seconds": 3600,
            "tags": ["reports", "daily"],
        },
    ),
    (
        REPORT_BY_NAME,
        {"target": {"type": "HANDLER", "name": "send_report"}, "retry_policy.max_attempts": 3},
    ),
    (
        REPORT_WITH_POLICY,
        {"retry_policy.backoff": "EXPONENTIAL", "retry_policy.max_attempts": 3},
    ),
    (
        REPORT_BY_EXECUTION,
        {
            "target.url": "https://reports.internal/api/generate",
            "payload": {"report_type": "daily_sales", "format": "pdf"},
            "timeout_seconds": 600,
            "retry_policy.max_attempts": 4,
            "retry_policy.initial_delay_seconds": 1,
            "retry_policy.max_delay_seconds": 60,
            "priority": 3,
            "callback_url": None,
        },
    ),
    (
        MAIL_BY_TYPE,
        {
            "target": {"type": "HANDLER", "name": "send_email"},
            "schedule.type": "ONE_TIME",
            "schedule.run_at": "2024-02-26T15:30:00Z",
            "payload": {"user_id": "user_001"},
        },
    ),
    (MAIL_IN_FULL, {"retry_policy.max_attempts": 4, "retry_policy.backoff": "EXPONENTIAL"}),
    (
        BILLING,
        {
            "schedule.run_at": "2024-02-22T18:00:00Z",
            "priority": 1,
            "callback_url": "https://billing.internal/webhook",
            "target": {"type": "HANDLER", "name": "monthly_billing_report"},
        },
    ),
    (PIPELINE, {"schedule.type": "CRON", "priority": 3, "retry_policy.max_attempts": 3}),
    (NIGHTLY, {"schedule.cron_expression": "0 2 * * *", "schedule.timezone": "UTC"}),
]


def at(body: Any, path: str) -> Any:  # noqa: ANN401 - any JSON
    for name in path.split("."):
        body = body[name]
    return body


@pytest.mark.parametrize(("given", "expected"), ANSWERS)
async def test_a_job_is_answered_in_the_full_shape(
    database: Database, given: dict[str, Any], expected: dict[str, Any]
) -> None:
    client = client_of(database)
    made = await client.post("/v1/jobs", given)
    assert made.status == 201, made.body
    assert {path: at(made.body, path) for path in expected} == expected
    read = await client.get(f"/v1/jobs/{made.body['job_id']}")
    assert read.body == made.body


async def test_a_pause_by_patch_and_a_trigger_with_an_override(database: Database) -> None:
    client = client_of(database)
    job = (await client.post("/v1/jobs", PIPELINE)).body["job_id"]
    paused = await client.patch(f"/v1/jobs/{job}", {"status": "paused"})
    assert (paused.status, paused.body["status"]) == (200, "PAUSED")
    resumed = await client.patch(f"/v1/jobs/{job}/resume")
    assert (resumed.status, resumed.body["status"]) == (200, "ACTIVE")
    again = await client.patch(f"/v1/jobs/{job}/pause")
    assert (again.status, again.body["status"]) == (200, "PAUSED")
    override = {"payload_override": {"report_type": "daily_sales", "date": "2025-01-07"}}
    made = await client.post(f"/v1/jobs/{job}/trigger", override)
    assert (made.status, made.body["trigger"], made.body["priority"]) == (202, "MANUAL", 2)
    listed = await client.get(
        f"/v1/jobs/{job}/executions", start_date="2025-01-01", end_date="2025-01-08", limit=100
    )
    assert (listed.status, listed.body["items"]) == (200, [])
