"""Every other way to write a job comes out in the one shape, and contradictions are refused."""

import math
from typing import Any

import pytest

from foliot.api.aliases import NAMES, expand_job, expand_names, expand_schedule
from foliot.core.errors import InvalidInput

CRON = {"type": "CRON", "cron_expression": "0 9 * * *"}
ONCE = {"type": "ONE_TIME", "run_at": "2027-01-01T09:00:00Z"}
NINE = "2027-01-01T09:00:00Z"
HANDLER = {"type": "HANDLER", "name": "n"}


@pytest.mark.parametrize(
    ("given", "schedule"),
    [
        ({"cron_expression": "0 9 * * *"}, CRON),
        ({"cron": "0 9 * * *"}, CRON),
        ({"schedule_pattern": "0 9 * * *"}, CRON),
        ({"schedule": "0 9 * * *"}, CRON),
        ({"schedule": "0 9 * * *", "timezone": "Asia/Tokyo"}, CRON | {"timezone": "Asia/Tokyo"}),
        ({"schedule": {"cron_expression": "0 9 * * *"}}, CRON),
        ({"run_at": NINE}, ONCE),
        ({"scheduled_at": NINE}, ONCE),
        ({"schedule_time": NINE}, ONCE),
        ({"scheduled_time": NINE}, ONCE),
        ({"delay_seconds": 2.5}, {"type": "DELAYED", "delay_seconds": 2.5}),
        ({"interval_seconds": 60}, {"type": "INTERVAL", "interval_seconds": 60}),
        ({"type": "one_time", "scheduled_at": NINE}, ONCE),
        ({"type": "recurring", "cron": "0 9 * * *"}, CRON),
        (
            {"type": "recurring", "interval_seconds": 60},
            {"type": "INTERVAL", "interval_seconds": 60},
        ),
        ({"type": "cron", "cron": "0 9 * * *"}, CRON),
        ({"type": "delayed", "delay_seconds": 1}, {"type": "DELAYED", "delay_seconds": 1}),
        ({"type": "immediate"}, {"type": "IMMEDIATE"}),
        ({"job_type": "CRON", "cron_expression": "0 9 * * *"}, CRON),
        ({"job_type": "one_time", "run_at": NINE}, ONCE),
        ({"job_type": "recurring", "cron": "0 9 * * *"}, CRON),
        ({"job_type": "delayed", "delay_seconds": 1}, {"type": "DELAYED", "delay_seconds": 1}),
        ({"type": "cron", "schedule": {"type": "CRON", "cron_expression": "0 9 * * *"}}, CRON),
        ({"schedule": {"after": {"jobs": ["a"]}}}, {"type": "AFTER", "after": {"jobs": ["a"]}}),
        ({}, {"type": "MANUAL"}),
        ({"schedule": None}, {"type": "MANUAL"}),
    ],
)
def test_a_schedule_has_many_names(given: dict[str, Any], schedule: dict[str, Any]) -> None:
    assert expand_job({"name": "n", **given}) == {
        "name": "n",
        "schedule": schedule,
        "target": HANDLER,
    }


@pytest.mark.parametrize(
    ("given", "policy"),
    [
        ({"max_attempts": 3}, {"max_attempts": 3}),
        ({"max_retries": 3}, {"max_attempts": 4}),
        ({"max_retries": 0}, {"max_attempts": 1}),
        ({"retry_backoff": "exponential"}, {"backoff": "exponential"}),
        ({"retry_policy": {"max_retries": 3}}, {"max_attempts": 4}),
        ({"retry_policy": {"initial_delay_ms": 1500}}, {"initial_delay_seconds": 1.5}),
        ({"retry_policy": {"max_delay_ms": 60000}}, {"max_delay_seconds": 60}),
        (
            {"retry_config": {"max_attempts": 3, "backoff_seconds": 300, "backoff_multiplier": 2}},
            {
                "max_attempts": 3,
                "initial_delay_seconds": 300,
                "multiplier": 2,
                "max_delay_seconds": 3600,
            },
        ),
        (
            {"retry_config": {"backoff_seconds": 7200}},
            {"initial_delay_seconds": 7200, "max_delay_seconds": 7200},
        ),
        (
            {"max_attempts": 4, "max_retries": 3, "retry_policy": {"max_attempts": 4}},
            {"max_attempts": 4},
        ),
    ],
)
def test_retries_have_many_names(given: dict[str, Any], policy: dict[str, Any]) -> None:
    assert expand_job({"name": "n", **given})["retry_policy"] == policy


@pytest.mark.parametrize(
    ("given", "target", "payload"),
    [
        ({"job_type": "send_email"}, {"type": "HANDLER", "name": "send_email"}, None),
        (
            {"payload": {"action": "extract", "x": 1}},
            {"type": "HANDLER", "name": "extract"},
            {"action": "extract", "x": 1},
        ),
        ({"payload": {"x": 1}}, HANDLER, {"x": 1}),
        ({"execution_params": {"user": 1}}, HANDLER, {"user": 1}),
        (
            {
                "execution": {
                    "callback_url": "https://a.example/x",
                    "method": "PUT",
                    "headers": {"A": "b"},
                    "payload": [1],
                }
            },
            {"type": "HTTP", "url": "https://a.example/x", "method": "PUT", "headers": {"A": "b"}},
            [1],
        ),
        (
            {"payload": {"endpoint": "https://a.example/x", "headers": {}, "body": {"r": 1}}},
            {"type": "HTTP", "url": "https://a.example/x", "headers": {}},
            {"r": 1},
        ),
        (
            {"payload": {"endpoint": "https://a.example"}},
            {"type": "HTTP", "url": "https://a.example"},
            None,
        ),
        ({"payload": {"endpoint": "x", "more": 1}}, HANDLER, {"endpoint": "x", "more": 1}),
        (
            {"payload": {"endpoint": "x"}, "target": {"type": "HANDLER", "name": "h"}},
            {"type": "HANDLER", "name": "h"},
            {"endpoint": "x"},
        ),
        ({"target": {"url": "https://a"}}, {"type": "HTTP", "url": "https://a"}, None),
        ({"target": {"argv": ["ls"]}}, {"type": "COMMAND", "argv": ["ls"]}, None),
    ],
)
def test_a_target_has_many_names(given: dict[str, Any], target: object, payload: object) -> None:
    made = expand_job({"name": "n", **given})
    assert made["target"] == target
    assert made.get("payload") == payload


def test_a_timeout_inside_execution_is_the_jobs() -> None:
    made = expand_job({"name": "n", "execution": {"callback_url": "u", "timeout_seconds": 600}})
    assert made["timeout_seconds"] == 600


def test_a_callback_url_at_the_top_is_no_target() -> None:
    made = expand_job({"name": "n", "callback_url": "https://a.example/done"})
    assert made["callback_url"] == "https://a.example/done"
    assert made["target"] == HANDLER


def test_the_one_shape_comes_out_as_it_went_in() -> None:
    whole = {
        "name": "n",
        "description": None,
        "schedule": {"type": "CRON", "cron_expression": "0 9 * * *", "run_at": None},
        "target": {"type": "HTTP", "url": "https://a.example", "method": "POST", "headers": {}},
        "payload": {"endpoint": "https://b.example"},
        "retry_policy": {"max_attempts": 4},
    }
    assert expand_job(whole) == whole
    assert expand_job(expand_job(whole)) == whole


def test_what_was_given_is_left_as_it_was() -> None:
    schedule = {"timezone": "UTC"}
    given = {"name": "n", "schedule": schedule, "cron": "0 9 * * *", "retry_policy": {}}
    expand_job(given)
    assert schedule == {"timezone": "UTC"}
    assert given == {"name": "n", "schedule": schedule, "cron": "0 9 * * *", "retry_policy": {}}


def test_a_name_that_nobody_knows_stays_to_be_refused() -> None:
    assert expand_job({"name": "n", "crn": "x"})["crn"] == "x"


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"cron": "0 9 * * *", "cron_expression": "0 8 * * *"}, "cron"),
        ({"cron": "0 9 * * *", "schedule": {"cron_expression": "0 8 * * *"}}, "cron"),
        ({"type": "cron", "schedule": {"type": "INTERVAL"}}, "type"),
        ({"max_retries": 3, "max_attempts": 3}, "max_retries"),
        ({"max_retries": -1}, "max_retries"),
        ({"max_retries": True}, "max_retries"),
        ({"retry_policy": {"initial_delay_ms": "1"}}, "retry_policy.initial_delay_ms"),
        ({"retry_config": {"backof_seconds": 1}}, "retry_config.backof_seconds"),
        ({"execution": {"callback_url": "u", "retries": 1}}, "execution.retries"),
        ({"execution": {"method": "POST"}}, "execution.callback_url"),
        ({"execution": {"callback_url": "u"}, "target": {"url": "v"}}, "execution.callback_url"),
        ({"execution": {"callback_url": "u", "payload": 1}, "payload": 2}, "execution.payload"),
        ({"job_type": "mail", "target": {"type": "HANDLER", "name": "x"}}, "job_type"),
        ({"execution_params": 1, "payload": 2}, "execution_params"),
    ],
)
def test_two_words_for_one_thing_must_agree(given: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        expand_job({"name": "n", **given})
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("given", "field", "bounds"),
    [
        ({"max_retries": 1000}, "max_retries", "use 0 to 999"),
        ({"max_retries": 10**400}, "max_retries", "use 0 to 999"),
        ({"retry_policy": {"max_retries": 10**400}}, "retry_policy.max_retries", "use 0 to 999"),
        *(
            ({"retry_policy": {name: value}}, f"retry_policy.{name}", "use 0 to 2592000000")
            for name in ("initial_delay_ms", "max_delay_ms")
            for value in (10**400, -(10**400), -1, math.nan, math.inf, 2_592_000_001)
        ),
    ],
)
def test_a_number_out_of_bounds_is_told_by_the_name_it_came_under(
    given: dict[str, Any], field: str, bounds: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        expand_job({"name": "n", **given})
    assert refused.value.field == field
    assert (refused.value.hint or "").startswith(bounds)


def test_a_job_that_says_nothing_of_its_work_is_refused() -> None:
    with pytest.raises(InvalidInput, match="target: is missing"):
        expand_job({"run_at": NINE})


def test_parts_of_a_job_are_moved_and_nothing_is_guessed() -> None:
    assert expand_names({"cron": "* * * * *", "payload": {"endpoint": "x"}}) == {
        "schedule": {"cron_expression": "* * * * *"},
        "payload": {"endpoint": "x"},
    }


def test_a_schedule_by_itself_may_be_an_expression() -> None:
    assert expand_schedule("0 9 * * *") == CRON
    assert expand_schedule({"run_at": NINE}) == ONCE
    assert expand_schedule(7) == 7


@pytest.mark.parametrize("name", sorted(NAMES))
def test_no_alias_goes_past_the_edge(name: str) -> None:
    values = {
        "type": "one_time",
        "execution": {"callback_url": "u"},
        "retry_config": {},
        "max_attempts": 2,
        "max_retries": 2,
    }
    assert name not in expand_job({"name": "n", name: values.get(name, "x")})
