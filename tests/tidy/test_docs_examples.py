"""What the reference says of an expression, a policy or a failure is what the code says."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from foliot.core.cron.expression import parse
from foliot.core.cron.words import describe
from foliot.core.model import ErrorType, Failure, RetryPolicy
from foliot.core.retry import is_retryable

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PAGE = REFERENCE / "schedules.md"
ROWS = re.findall(r"^\| `([^`]+)` \| ([\w/]+) \| (.+) \|$", PAGE.read_text(), re.MULTILINE)
RETRIES = (REFERENCE / "retries.md").read_text()


def test_the_page_has_examples() -> None:
    assert len(ROWS) >= 15


@pytest.mark.parametrize(("expression", "timezone", "meaning"), ROWS)
def test_an_expression_means_what_the_page_says(
    expression: str, timezone: str, meaning: str
) -> None:
    assert describe(parse(expression), timezone) == meaning


def test_the_page_on_retries_has_every_field_of_a_policy_with_its_default() -> None:
    shown = dict(re.findall(r"^\| `([a-z_]+)` \| `?([\w.]+)`? \|", RETRIES, re.MULTILINE))
    policy = RetryPolicy()
    defaults = {field.name: getattr(policy, field.name) for field in fields(policy)}
    assert shown == {name: "none" if it is None else str(it) for name, it in defaults.items()}


def test_the_page_on_retries_says_of_every_failure_whether_it_is_retried() -> None:
    rows = re.findall(r"^\| (`[A-Z].+) \| (yes|no)\b", RETRIES, re.MULTILINE)
    shown = {
        (name, answer == "yes") for row, answer in rows for name in re.findall(r"[A-Z_]{7,}", row)
    }
    plain = {(each, is_retryable(Failure(each))) for each in ErrorType}
    assert shown == plain | {("HTTP_ERROR", False)}
    statuses = [s for s in range(400, 500) if is_retryable(Failure(ErrorType.HTTP_ERROR, "", s))]
    assert statuses == [408, 429]
    assert "with 5xx, 429 or 408" in RETRIES
