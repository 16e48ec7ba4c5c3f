"""Which retry policies can be kept: checked when a job is saved, each refusal with its fix."""

import sys
from typing import Final

from foliot.core.errors import InvalidInput
from foliot.core.model import RetryPolicy

ATTEMPTS_MAX: Final = 1000
CRASHES_MAX: Final = 100
DELAY_SECONDS_MAX: Final = 30 * 86_400.0
_NUMBER_MAX: Final = sys.float_info.max


def check_retry_policy(policy: RetryPolicy) -> None:
    """Raise on the first value that cannot be kept."""
    _within(
        "max_attempts",
        policy.max_attempts,
        (1, ATTEMPTS_MAX),
        "1 means no retry",
    )
    _within(
        "initial_delay_seconds",
        policy.initial_delay_seconds,
        (0, DELAY_SECONDS_MAX),
        "the delay after the first failure",
    )
    _within(
        "multiplier",
        policy.multiplier,
        (1, _NUMBER_MAX),
        "2 doubles the delay each time",
    )
    _within(
        "max_delay_seconds",
        policy.max_delay_seconds,
        (policy.initial_delay_seconds, DELAY_SECONDS_MAX),
        "not under initial_delay_seconds",
    )
    _within("jitter", policy.jitter, (0, 1), "0.25 spreads the delay by a quarter each way")
    _within(
        "max_crashes", policy.max_crashes, (1, CRASHES_MAX), "crashes alone before it is poison"
    )
    if policy.poison_window_seconds is not None:
        _within(
            "poison_window_seconds",
            policy.poison_window_seconds,
            (0.001, DELAY_SECONDS_MAX),
            "or null for none",
        )


def _within(name: str, value: float, bounds: tuple[float, float], meaning: str) -> None:
    low, high = bounds
    # NaN and infinity fail the comparison too.
    if low <= value <= high:
        return
    limits = f"at least {low:g}" if high == _NUMBER_MAX else f"{low:g} to {high:g}"
    raise InvalidInput(
        f"{_shown(value)} is out of bounds",
        field=f"retry_policy.{name}",
        hint=f"use {limits}; {meaning}",
    )


def _shown(value: float) -> str:
    """A whole number may be larger than any float."""
    try:
        return f"{value:g}"
    except OverflowError:
        return "a number of so many digits"
