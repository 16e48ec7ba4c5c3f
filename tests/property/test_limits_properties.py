"""Whole histories run under random limits, then checked from the outside by their times alone."""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.core.ids import ExecutionId, JobId, TenantId
from foliot.core.limits import (
    Candidate,
    Limit,
    LimitKey,
    Use,
    admit,
    burst,
    job_limit,
    job_rate,
    key_limit,
    queue_limit,
    tenant_limit,
    tenant_rate,
    window_use,
)
from foliot.core.model import RateLimit

START = datetime(2026, 1, 1, tzinfo=UTC)
TENANTS = [TenantId(UUID(int=n)) for n in (1, 2)]
JOBS = [JobId(UUID(int=n)) for n in (1, 2, 3)]


@dataclass(frozen=True)
class Run:
    limits: tuple[Limit, ...]
    started_at: datetime
    finished_at: datetime


@st.composite
def limit_sets(draw: st.DrawFn) -> list[Limit]:
    """One limit of each kind, some missing, over few tenants, jobs and keys."""
    few = st.integers(1, 4)
    rates = st.builds(RateLimit, few, st.floats(0.5, 20))
    tenant, job = st.sampled_from(TENANTS), st.sampled_from(JOBS)
    some = [
        st.builds(queue_limit, st.sampled_from(["q1", "q2"]), few),
        st.builds(tenant_limit, tenant, few),
        st.builds(job_limit, tenant, job, st.just("j"), few),
        st.builds(key_limit, tenant, st.sampled_from(["k1", "k2"]), few),
        st.builds(tenant_rate, tenant, rates),
        st.builds(job_rate, tenant, job, st.just("j"), rates),
    ]
    chosen = {limit.key: limit for limit in draw(st.lists(st.one_of(some), max_size=8)) if limit}
    return list(chosen.values())


def rate_of(limit: Limit) -> RateLimit:
    return RateLimit(limit.at_most, limit.period_seconds)


def uses_of(limits: list[Limit], history: list[Run], now: datetime) -> dict[LimitKey, Use]:
    uses = {}
    for limit in limits:
        mine = [run for run in history if limit in run.limits]
        if limit.period_seconds is None:
            uses[limit.key] = Use(sum(run.finished_at > now for run in mine))
        else:
            uses[limit.key] = window_use(rate_of(limit), [run.started_at for run in mine], now)
    return uses


@settings(deadline=None, max_examples=150)
@given(limit_sets(), st.data())
def test_no_history_ever_exceeds_a_limit_and_no_row_waits_without_one(
    limits: list[Limit], data: st.DataObject
) -> None:
    sets = st.lists(st.sampled_from(limits), unique=True, max_size=4) if limits else st.just([])
    history: list[Run] = []
    waiting: list[Candidate] = []
    now = START
    for step in range(data.draw(st.integers(1, 12))):
        now += timedelta(seconds=data.draw(st.floats(0, 10)))
        arrivals = data.draw(st.lists(sets, max_size=6))
        waiting += [
            Candidate(ExecutionId(UUID(int=step * 100 + n)), tuple(each))
            for n, each in enumerate(arrivals)
        ]
        decision = admit(waiting, uses_of(limits, history, now), now, slots=100)
        by_id = {candidate.execution_id: candidate for candidate in waiting}
        for admitted in decision.admitted:
            length = timedelta(seconds=data.draw(st.floats(0.001, 15)))
            history.append(Run(by_id.pop(admitted).limits, now, now + length))
        waiting = [candidate for candidate in waiting if candidate.execution_id in by_id]
        assert [held.execution_id for held in decision.held] == list(by_id)
        after = uses_of(limits, history, now)
        for candidate in waiting:
            assert any(after[limit.key].used >= limit.at_most for limit in candidate.limits)
    for limit in limits:
        assert_never_exceeded(limit, [run for run in history if limit in run.limits])


def assert_never_exceeded(limit: Limit, runs: list[Run]) -> None:
    if limit.period_seconds is None:
        for run in runs:
            at = run.started_at
            assert sum(each.started_at <= at < each.finished_at for each in runs) <= limit.at_most
        return
    period = timedelta(seconds=limit.period_seconds)
    for run in runs:
        window = [each for each in runs if run.started_at <= each.started_at]
        assert sum(each.started_at < run.started_at + period for each in window) <= limit.at_most


@settings(deadline=None, max_examples=200)
@given(
    st.integers(1, 6),
    st.floats(0.5, 30),
    st.integers(1, 3),
    st.lists(st.floats(0, 20), min_size=1, max_size=60),
)
def test_starts_in_any_span_stay_under_the_rate_plus_one_burst(
    count: int, period: float, factor: int, gaps: list[float]
) -> None:
    rate = RateLimit(count, period)
    widened = burst(rate, factor)
    starts: list[datetime] = []
    now = START
    for gap in gaps:
        now += timedelta(seconds=gap)
        use = window_use(widened, starts, now)
        starts += [now] * max(0, (widened.count or 0) - use.used)
    for first, begin in enumerate(starts):
        for last in range(first, len(starts)):
            span = (starts[last] - begin).total_seconds()
            allowed = count * span / period + count * factor
            assert last - first + 1 <= allowed + 1e-3


@settings(deadline=None, max_examples=200)
@given(
    st.integers(1, 5),
    st.floats(0.5, 30),
    st.lists(st.floats(0, 60), min_size=1, max_size=20),
)
def test_the_next_slot_is_the_first_moment_with_room(
    count: int, period: float, seconds: list[float]
) -> None:
    rate = RateLimit(count, period)
    starts = sorted(START + timedelta(seconds=each) for each in seconds)
    now = starts[-1]
    use = window_use(rate, starts, now)
    if use.used < count:
        return
    assert use.next_slot_at
    just_before = use.next_slot_at - timedelta(microseconds=1)
    assert window_use(rate, starts, just_before).used >= count
    assert window_use(rate, starts, use.next_slot_at).used < count


@settings(deadline=None, max_examples=100)
@given(st.lists(st.sampled_from(["a", "b", "c", None]), max_size=30), st.integers(0, 3))
def test_a_limited_key_never_blocks_the_rows_of_others(
    keys: list[str | None], running: int
) -> None:
    limits = {key: key_limit(TENANTS[0], key, 2) for key in ("a", "b", "c")}
    rows = [
        Candidate(ExecutionId(UUID(int=n)), (limits[key],) if key else ())
        for n, key in enumerate(keys)
    ]
    admitted = admit(rows, {limits["a"].key: Use(running)}, START, slots=1000).admitted
    started = Counter(keys[identity.int] for identity in admitted)
    for key in ("a", "b", "c", None):
        free = {"a": max(0, 2 - running), None: len(keys)}.get(key, 2)
        assert started[key] == min(keys.count(key), free)
