from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from foliot.core.errors import InvalidInput
from foliot.core.ids import ExecutionId, JobId, TenantId
from foliot.core.limits import (
    Admission,
    Blocker,
    Candidate,
    Held,
    Limit,
    LimitKey,
    Scope,
    Use,
    admit,
    burst,
    check_concurrency_limit,
    check_rate_limit,
    job_limit,
    job_rate,
    key_limit,
    queue_limit,
    room,
    tenant_limit,
    tenant_rate,
    window_use,
)
from foliot.core.model import RateLimit

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
ACME, BLUE = TenantId(UUID(int=1)), TenantId(UUID(int=2))
JOB = JobId(UUID(int=9))


def row(number: int, *limits: Limit) -> Candidate:
    return Candidate(ExecutionId(UUID(int=number)), limits)


def ids(*numbers: int) -> tuple[ExecutionId, ...]:
    return tuple(ExecutionId(UUID(int=number)) for number in numbers)


def ago(*seconds: float) -> list[datetime]:
    return [NOW - timedelta(seconds=each) for each in seconds]


def test_rows_without_limits_start_as_long_as_slots_last() -> None:
    assert admit([row(1), row(2), row(3)], {}, NOW, slots=2) == Admission(ids(1, 2), ())


def test_without_slots_nobody_is_judged() -> None:
    full = queue_limit("default", 0)
    assert admit([row(1, full)], {}, NOW, slots=0) == Admission((), ())


def test_a_full_key_holds_its_rows_and_nobody_behind_them() -> None:
    full, other = key_limit(ACME, "tenant=7", 3), key_limit(ACME, "tenant=8", 3)
    decision = admit(
        [row(1, full), row(2, full), row(3, other), row(4)], {full.key: Use(3)}, NOW, slots=10
    )
    assert decision.admitted == ids(3, 4)
    assert [held.execution_id for held in decision.held] == list(ids(1, 2))


def test_rows_of_one_batch_count_against_each_other() -> None:
    limit = key_limit(ACME, "crm", 2)
    decision = admit([row(n, limit) for n in (1, 2, 3)], {limit.key: Use(1)}, NOW, slots=10)
    assert decision.admitted == ids(1)
    assert [held.blockers[0].used for held in decision.held] == [2, 2]


def test_a_held_row_takes_no_room_of_its_other_limits() -> None:
    full, queue = key_limit(ACME, "crm", 1), queue_limit("default", 1)
    decision = admit([row(1, queue, full), row(2, queue)], {full.key: Use(1)}, NOW, slots=10)
    assert decision.admitted == ids(2)


def test_the_same_key_of_two_tenants_is_two_keys() -> None:
    acme, blue = key_limit(ACME, "crm", 1), key_limit(BLUE, "crm", 1)
    decision = admit([row(1, acme), row(2, blue)], {acme.key: Use(1)}, NOW, slots=10)
    assert decision.admitted == ids(2)


def test_jobs_that_share_a_key_each_go_by_their_own_limit() -> None:
    strict, loose = key_limit(ACME, "crm", 1), key_limit(ACME, "crm", 3)
    decision = admit(
        [row(1, strict), row(2, loose), row(3, loose)], {strict.key: Use(1)}, NOW, slots=10
    )
    assert decision.admitted == ids(2, 3)


def test_every_blocker_is_named_widest_first() -> None:
    rate = RateLimit(1, 60)
    limits = (
        job_rate(ACME, JOB, "report", rate),
        tenant_rate(ACME, rate),
        key_limit(ACME, "crm", 1),
        job_limit(ACME, JOB, "report", 1),
        tenant_limit(ACME, 1),
        queue_limit("default", 1),
    )
    candidate = row(1, *(limit for limit in limits if limit))
    uses = {limit.key: Use(1) for limit in candidate.limits}
    (held,) = admit([candidate], uses, NOW, slots=1).held
    assert [blocker.limit.key.scope for blocker in held.blockers] == list(Scope)
    assert all(blocker.way_out.startswith("wait for ") for blocker in held.blockers)


@pytest.mark.parametrize(
    ("blocker", "words"),
    [
        (
            Blocker(key_limit(ACME, "tenant=7", 3), 3),
            "concurrency key tenant=7: 3 of 3 running",
        ),
        (Blocker(queue_limit("gpu", 2), 5), "queue gpu: 5 of 2 running"),
        (
            Blocker(
                Limit(LimitKey(Scope.JOB_RATE, ACME, "x"), "rate limit of job x", 100, 60.0),
                100,
                NOW + timedelta(seconds=1.5),
            ),
            "rate limit of job x: 100 of 100 per 60 s used, next slot at 2026-05-01T12:00:01.500Z",
        ),
    ],
)
def test_a_blocker_is_said_in_words(blocker: Blocker, words: str) -> None:
    assert str(blocker) == words


def test_a_rate_filled_by_this_batch_has_its_next_slot_a_period_later() -> None:
    limit = job_rate(ACME, JOB, "report", RateLimit(1, 60))
    assert limit
    decision = admit([row(1, limit), row(2, limit)], {}, NOW, slots=10)
    minute_later = NOW + timedelta(seconds=60)
    assert decision == Admission(ids(1), (Held(ids(2)[0], (Blocker(limit, 1, minute_later),)),))


def test_a_rate_in_use_has_its_next_slot_when_the_oldest_start_leaves() -> None:
    limit = job_rate(ACME, JOB, "report", RateLimit(2, 60))
    assert limit
    use = Use(1, NOW + timedelta(seconds=7))
    (held,) = admit([row(1, limit), row(2, limit)], {limit.key: use}, NOW, slots=10).held
    assert held.blockers == (Blocker(limit, 2, NOW + timedelta(seconds=7)),)


@pytest.mark.parametrize(
    ("starts", "use"),
    [
        ([], Use(0, None)),
        (ago(60), Use(0, None)),
        (ago(59), Use(1, NOW + timedelta(seconds=1))),
        (ago(90, 50, 40, 30), Use(3, NOW + timedelta(seconds=10))),
        (ago(50, 40, 30, 20, 10), Use(5, NOW + timedelta(seconds=30))),
    ],
)
def test_a_window_counts_the_starts_of_one_period(starts: list[datetime], use: Use) -> None:
    assert window_use(RateLimit(3, 60), starts, NOW) == use


def test_no_rate_limit_counts_nothing() -> None:
    assert window_use(RateLimit(), ago(1), NOW) == Use()
    assert tenant_rate(ACME, RateLimit()) is None
    assert burst(RateLimit(), 2) == RateLimit()


@pytest.mark.parametrize(
    ("rate", "factor", "expected"),
    [
        (RateLimit(100, 60), 2, RateLimit(200, 120)),
        (RateLimit(1, 10), 1.5, RateLimit(1, 10)),
        (RateLimit(5, 10), 1.5, RateLimit(7, 14)),
        (RateLimit(5, 10), 0.5, RateLimit(5, 10)),
    ],
)
def test_a_burst_is_a_longer_window_of_the_same_rate(
    rate: RateLimit, factor: float, expected: RateLimit
) -> None:
    assert burst(rate, factor) == expected


def test_room_is_that_of_the_tightest_limit() -> None:
    key, queue = key_limit(ACME, "crm", 5), queue_limit("default", 100)
    assert room([key, queue], {key.key: Use(2), queue.key: Use(10)}) == 3
    assert room([key], {key.key: Use(9)}) == 0
    assert room([], {}) is None


@pytest.mark.parametrize("at_most", [0, -1, 1_000_001])
def test_an_impossible_concurrency_limit_is_refused(at_most: int) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_concurrency_limit(at_most)
    assert caught.value.field == "concurrency.limit"


@pytest.mark.parametrize("at_most", [None, 1, 1_000_000])
def test_a_possible_concurrency_limit_is_accepted(at_most: int | None) -> None:
    check_concurrency_limit(at_most)


@pytest.mark.parametrize(
    ("rate", "field"),
    [
        (RateLimit(None, 60), "rate_limit.count"),
        (RateLimit(5, None), "rate_limit.period_seconds"),
        (RateLimit(0, 60), "rate_limit.count"),
        (RateLimit(5, 0), "rate_limit.period_seconds"),
        (RateLimit(5, -1), "rate_limit.period_seconds"),
        (RateLimit(5, float("nan")), "rate_limit.period_seconds"),
        (RateLimit(5, float("inf")), "rate_limit.period_seconds"),
    ],
)
def test_an_impossible_rate_is_refused(rate: RateLimit, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_rate_limit(rate)
    assert caught.value.field == field


@pytest.mark.parametrize("rate", [RateLimit(), RateLimit(1, 0.5), RateLimit(100, 86_400)])
def test_a_possible_rate_is_accepted(rate: RateLimit) -> None:
    check_rate_limit(rate)
