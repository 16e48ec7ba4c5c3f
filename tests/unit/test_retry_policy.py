import math
from dataclasses import replace
from typing import Any

import pytest

from foliot.core.errors import InvalidInput
from foliot.core.model import RetryPolicy
from foliot.core.retry_policy import check_retry_policy

HUGE = 10**400  # a whole number that no float can hold


@pytest.mark.parametrize(
    "policy",
    [
        RetryPolicy(),
        RetryPolicy(max_attempts=1, initial_delay_seconds=0, max_delay_seconds=0),
        RetryPolicy(multiplier=1e308, jitter=1, max_attempts=1000),
        RetryPolicy(initial_delay_seconds=60, max_delay_seconds=60, poison_window_seconds=60),
    ],
)
def test_a_policy_that_can_be_kept_is_accepted(policy: RetryPolicy) -> None:
    check_retry_policy(policy)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_attempts", 0),
        ("max_attempts", 1001),
        pytest.param("max_attempts", HUGE, id="max_attempts-huge"),
        pytest.param("max_attempts", -HUGE, id="max_attempts-minus-huge"),
        ("initial_delay_seconds", -1),
        ("initial_delay_seconds", math.nan),
        ("multiplier", 0.5),
        ("multiplier", math.inf),
        pytest.param("multiplier", HUGE, id="multiplier-huge"),
        ("max_delay_seconds", 0.5),
        ("max_delay_seconds", math.inf),
        ("jitter", -0.1),
        ("jitter", 1.1),
        ("max_crashes", 0),
        ("max_crashes", 101),
        pytest.param("max_crashes", HUGE, id="max_crashes-huge"),
        ("poison_window_seconds", 0),
        ("poison_window_seconds", math.nan),
    ],
)
def test_a_policy_that_cannot_be_kept_names_the_field_and_the_fix(field: str, value: float) -> None:
    changed: dict[str, Any] = {field: value}
    with pytest.raises(InvalidInput) as caught:
        check_retry_policy(replace(RetryPolicy(), **changed))
    assert caught.value.field == f"retry_policy.{field}"
    assert caught.value.hint
    assert caught.value.hint.startswith("use ")
