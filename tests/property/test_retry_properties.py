from datetime import UTC, datetime
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.core.model import Backoff, ErrorType, Failure, RetryPolicy
from foliot.core.poison import Death, QueueAgain, RunAlone, after_death
from foliot.core.retry import (
    RETRY_AFTER_SECONDS_MAX,
    GiveUp,
    Retry,
    backoff_seconds,
    decide,
    event_of,
    parse_retry_after,
)
from foliot.core.retry_policy import check_retry_policy
from foliot.core.states import EXECUTION, ExecutionState, advance

NOW = datetime(2026, 5, 1, tzinfo=UTC)
CHANCE = st.floats(0, 1, exclude_max=True)


@st.composite
def policies(draw: st.DrawFn) -> RetryPolicy:
    initial = draw(st.floats(0, 1e6))
    policy = RetryPolicy(
        max_attempts=draw(st.integers(1, 1000)),
        backoff=draw(st.sampled_from(Backoff)),
        initial_delay_seconds=initial,
        multiplier=draw(st.floats(1, 1e308)),
        max_delay_seconds=draw(st.floats(initial, 2e6)),
        jitter=draw(st.floats(0, 1)),
        max_crashes=draw(st.integers(1, 100)),
    )
    check_retry_policy(policy)
    return policy


FAILURES = st.builds(
    Failure,
    type=st.sampled_from(ErrorType),
    message=st.text(max_size=20),
    http_status=st.none() | st.integers(),
    retry_after_seconds=st.none() | st.floats(),
    do_not_retry=st.booleans(),
)


@settings(deadline=None)
@given(policies(), st.integers(1, 10**6), FAILURES, CHANCE, st.booleans())
def test_a_decision_is_always_found_and_always_within_its_bounds(
    policy: RetryPolicy, attempt_number: int, failure: Failure, chance: float, poisoned: bool
) -> None:
    decision = decide(policy, attempt_number, failure, chance=chance, poisoned=poisoned)
    if isinstance(decision, Retry):
        assert attempt_number < policy.max_attempts
        assert not failure.do_not_retry
        floor = backoff_seconds(policy, attempt_number, chance=chance)
        ceiling = max(policy.max_delay_seconds, RETRY_AFTER_SECONDS_MAX)
        assert 0 <= floor <= decision.delay_seconds <= ceiling
    advance(EXECUTION, ExecutionState.RUNNING, event_of(decision, failure))


@settings(deadline=None)
@given(policies(), st.integers(1, 10**6), CHANCE)
def test_jitter_stays_within_its_part_of_the_plain_delay(
    policy: RetryPolicy, attempt_number: int, chance: float
) -> None:
    plain = backoff_seconds(policy, attempt_number, chance=0.5)
    delay = backoff_seconds(policy, attempt_number, chance=chance)
    assert delay >= plain * (1 - policy.jitter) * (1 - 1e-9) - 1e-300
    assert delay <= plain * (1 + policy.jitter) * (1 + 1e-9) + 1e-300
    assert delay <= policy.max_delay_seconds


@settings(deadline=None)
@given(policies(), st.lists(st.integers(1, 10**6), min_size=2, max_size=10))
def test_without_jitter_a_later_attempt_never_waits_less(
    policy: RetryPolicy, attempts: list[int]
) -> None:
    delays = [backoff_seconds(policy, n, chance=0.5) for n in sorted(attempts)]
    assert all(earlier <= later for earlier, later in pairwise(delays))


@settings(deadline=None)
@given(st.integers(1, 50), CHANCE)
def test_an_execution_that_always_fails_makes_exactly_its_attempts(
    max_attempts: int, chance: float
) -> None:
    policy = RetryPolicy(max_attempts=max_attempts)
    attempt_number = 1
    while isinstance(
        decide(policy, attempt_number, Failure(ErrorType.TIMEOUT), chance=chance), Retry
    ):
        attempt_number += 1
    assert attempt_number == max_attempts


@settings(deadline=None)
@given(policies(), st.lists(st.sampled_from(Death), max_size=200))
def test_only_a_death_alone_ends_an_execution_and_what_never_began_costs_no_attempt(
    policy: RetryPolicy, deaths: list[Death]
) -> None:
    crash_count = alone = begun = 0
    for death in deaths:
        alone += death is Death.ALONE
        begun += death is not Death.NOT_STARTED
        attempt_number = begun + (death is Death.NOT_STARTED)
        decision = after_death(policy, attempt_number, crash_count, death)
        spent = alone >= policy.max_crashes or begun >= policy.max_attempts
        assert isinstance(decision, GiveUp) is (death is Death.ALONE and spent)
        assert isinstance(decision, QueueAgain) is (death is Death.NOT_STARTED)
        if isinstance(decision, GiveUp):
            break
        if isinstance(decision, RunAlone):
            crash_count = decision.crash_count
        assert crash_count == alone


@settings(deadline=None)
@given(st.text() | st.floats().map(str) | st.integers().map(str) | st.datetimes().map(str))
def test_any_retry_after_header_gives_a_usable_wait_or_none(header: str) -> None:
    seconds = parse_retry_after(header, NOW)
    assert seconds is None or 0 <= seconds < 1e19
