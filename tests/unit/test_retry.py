import math
from datetime import UTC, datetime

import pytest

from foliot.core.model import Backoff, ErrorType, Failure, RetryPolicy
from foliot.core.retry import (
    Cancelled,
    DeadLetterReason,
    GiveUp,
    Retry,
    RetryDecision,
    Snooze,
    backoff_seconds,
    decide,
    event_of,
    is_retryable,
    parse_retry_after,
    snooze,
)
from foliot.core.states import ExecutionEvent

POLICY = RetryPolicy()
MIDDLE = 0.5  # the chance at which jitter changes nothing
BROKEN = Failure(ErrorType.CONNECTION)
EXHAUSTED = GiveUp(DeadLetterReason.EXHAUSTED)
NON_RETRYABLE = GiveUp(DeadLetterReason.NON_RETRYABLE)
POISON = GiveUp(DeadLetterReason.POISON)


@pytest.mark.parametrize(
    ("policy", "delays"),
    [
        (RetryPolicy(backoff=Backoff.FIXED), [1, 1, 1, 1]),
        (RetryPolicy(backoff=Backoff.LINEAR, initial_delay_seconds=5), [5, 10, 15, 20]),
        (RetryPolicy(), [1, 2, 4, 8]),
        (RetryPolicy(initial_delay_seconds=10, multiplier=3), [10, 30, 60, 60]),
        (RetryPolicy(initial_delay_seconds=0), [0, 0, 0, 0]),
    ],
)
def test_the_delay_grows_by_the_policy_up_to_the_cap(
    policy: RetryPolicy, delays: list[float]
) -> None:
    assert [backoff_seconds(policy, n, chance=MIDDLE) for n in (1, 2, 3, 4)] == delays


@pytest.mark.parametrize(
    ("chance", "delay"), [(0.0, 3.0), (MIDDLE, 4.0), (0.75, 4.5), (1 - 2**-53, 5.0)]
)
def test_jitter_spreads_the_delay_by_a_quarter_each_way(chance: float, delay: float) -> None:
    assert backoff_seconds(POLICY, 3, chance=chance) == pytest.approx(delay)


@pytest.mark.parametrize(("chance", "delay"), [(0.0, 48), (0.25, 56), (0.9, 60)])
def test_jitter_comes_before_the_cap(chance: float, delay: float) -> None:
    assert backoff_seconds(POLICY, 7, chance=chance) == pytest.approx(delay)


@pytest.mark.parametrize(
    "policy",
    [
        RetryPolicy(multiplier=1e308),
        RetryPolicy(multiplier=1.0000001, max_delay_seconds=1),
        RetryPolicy(backoff=Backoff.LINEAR),
        RetryPolicy(multiplier=1e308, initial_delay_seconds=50),
    ],
)
def test_a_millionth_attempt_waits_the_cap(policy: RetryPolicy) -> None:
    delay = backoff_seconds(policy, 10**6, chance=MIDDLE)
    assert delay == policy.max_delay_seconds


@pytest.mark.parametrize(
    ("multiplier", "initial"), [(1e308, 1), (1e154, 50)], ids=["power", "product"]
)
def test_full_jitter_on_an_overflowing_delay_is_still_a_number(
    multiplier: float, initial: float
) -> None:
    policy = RetryPolicy(multiplier=multiplier, initial_delay_seconds=initial, jitter=1)
    assert backoff_seconds(policy, 3, chance=0.0) == 0


def test_no_initial_delay_stays_none_however_it_grows() -> None:
    policy = RetryPolicy(multiplier=1e308, initial_delay_seconds=0)
    assert backoff_seconds(policy, 10, chance=MIDDLE) == 0


@pytest.mark.parametrize(
    ("attempt_number", "decision"),
    [(1, Retry(1)), (3, Retry(4)), (4, EXHAUSTED), (5, EXHAUSTED)],
)
def test_the_fourth_failure_is_the_last(attempt_number: int, decision: RetryDecision) -> None:
    assert decide(POLICY, attempt_number, BROKEN, chance=MIDDLE) == decision


@pytest.mark.parametrize(
    ("status", "retryable"),
    [
        (500, True),
        (501, True),
        (503, True),
        (599, True),
        (429, True),
        (408, True),
        (None, True),
        (400, False),
        (401, False),
        (404, False),
        (409, False),
        (425, False),
        (499, False),
        (301, False),
        (304, False),
        (200, False),
        (600, False),
    ],
)
def test_an_http_status_says_whether_waiting_helps(status: int | None, retryable: bool) -> None:
    assert is_retryable(Failure(ErrorType.HTTP_ERROR, http_status=status)) is retryable


def test_every_other_type_of_error_is_classified() -> None:
    retryable = {each for each in ErrorType if is_retryable(Failure(each, http_status=404))}
    assert retryable == {
        ErrorType.TIMEOUT,
        ErrorType.CONNECTION,
        ErrorType.HANDLER_ERROR,
        ErrorType.EXIT_CODE,
        ErrorType.WORKER_LOST,
    }


def test_a_handler_can_forbid_the_retry() -> None:
    failure = Failure(ErrorType.HANDLER_ERROR, do_not_retry=True)
    assert decide(POLICY, 1, failure, chance=MIDDLE) == NON_RETRYABLE


def test_what_cannot_be_mended_is_called_that_on_the_last_attempt_too() -> None:
    failure = Failure(ErrorType.INVALID_PAYLOAD)
    assert decide(POLICY, 4, failure, chance=MIDDLE, poisoned=True) == NON_RETRYABLE


def test_poison_ends_it_before_the_attempts_do() -> None:
    assert decide(POLICY, 3, BROKEN, chance=MIDDLE, poisoned=True) == POISON
    assert decide(POLICY, 4, BROKEN, chance=MIDDLE, poisoned=True) == POISON


def test_what_nobody_started_in_time_is_called_expired() -> None:
    expired = GiveUp(DeadLetterReason.EXPIRED)
    assert decide(POLICY, 1, Failure(ErrorType.EXPIRED), chance=MIDDLE, poisoned=True) == expired


def test_a_cancelled_execution_leaves_no_dead_letter() -> None:
    assert decide(POLICY, 4, Failure(ErrorType.CANCELLED), chance=MIDDLE) == Cancelled()


@pytest.mark.parametrize(
    ("retry_after", "delay"),
    [
        (None, 4),
        (0.0, 4),
        (1.0, 4),
        (30.0, 30),
        (600.0, 600),
        (7200.0, 3600),
        (math.inf, 3600),
        (math.nan, 4),
        (-5.0, 4),
    ],
)
def test_retry_after_lengthens_the_delay_up_to_an_hour(
    retry_after: float | None, delay: float
) -> None:
    failure = Failure(ErrorType.HTTP_ERROR, http_status=429, retry_after_seconds=retry_after)
    assert decide(POLICY, 3, failure, chance=MIDDLE) == Retry(delay)


NOW = datetime(1994, 11, 6, 8, 49, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120),
        (" 0 ", 0),
        ("1.5", 1.5),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 37),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 37),
        ("Sun Nov  6 08:49:37 1994", 37),
        ("Sun, 06 Nov 1994 08:49:37 -0000", 37),
        ("Sun, 06 Nov 1994 08:00:00 GMT", 0),
    ],
)
def test_retry_after_is_seconds_or_a_date(header: str, seconds: float) -> None:
    assert parse_retry_after(header, NOW) == seconds


@pytest.mark.parametrize(
    "header",
    [
        "",
        "soon",
        "-1",
        "1e9",
        "nan",
        "inf",
        "٣",
        "9" * 5000,
        "Mon, 99 Foo 99999 99:99:99 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT" + " x" * 50,
    ],
)
def test_a_retry_after_that_says_nothing_is_ignored(header: str) -> None:
    assert parse_retry_after(header, NOW) is None


@pytest.mark.parametrize(
    ("wish", "granted"),
    [(0.25, 0.25), (-1, 0), (math.nan, 0), (math.inf, 366 * 86_400), (3600, 3600)],
)
def test_a_snooze_is_granted_within_a_year(wish: float, granted: float) -> None:
    assert snooze(wish) == Snooze(granted)


@pytest.mark.parametrize(
    ("decision", "failure", "event"),
    [
        (Retry(1), BROKEN, ExecutionEvent.RETRY),
        (Snooze(1), None, ExecutionEvent.SNOOZE),
        (Cancelled(), Failure(ErrorType.CANCELLED), ExecutionEvent.CANCEL),
        (EXHAUSTED, BROKEN, ExecutionEvent.FAIL),
        (EXHAUSTED, Failure(ErrorType.TIMEOUT), ExecutionEvent.TIME_OUT),
        (POISON, None, ExecutionEvent.FAIL),
    ],
)
def test_each_decision_is_one_event_of_the_state_machine(
    decision: RetryDecision | Snooze, failure: Failure | None, event: ExecutionEvent
) -> None:
    assert event_of(decision, failure) is event
