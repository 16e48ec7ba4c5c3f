from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID, uuid4

import pytest

from foliot.core.errors import InvalidInput
from foliot.core.ids import (
    EPOCH,
    SHARDS,
    ExecutionId,
    JobId,
    TenantId,
    after_execution,
    from_microseconds,
    instant_of,
    microseconds,
    replayed_execution,
    requested_execution,
    scheduled_execution,
    shard_of,
)

JOB, OTHER_JOB = JobId(UUID(int=1)), JobId(UUID(int=2))
TENANT, OTHER_TENANT = TenantId(UUID(int=3)), TenantId(UUID(int=4))
NOON = datetime(2026, 5, 1, 12, 0, 0, 123456, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def test_an_id_never_changes_between_releases() -> None:
    assert str(scheduled_execution(JOB, NOON)) == "019de368-f67b-80db-84b0-72495a631525"
    assert shard_of(JOB) == 16


def test_the_same_instant_in_another_zone_is_the_same_execution() -> None:
    local = NOON.astimezone(timezone(timedelta(hours=-7)))
    assert scheduled_execution(JOB, local) == scheduled_execution(JOB, NOON)


def test_instants_a_microsecond_apart_are_different_executions() -> None:
    assert scheduled_execution(JOB, NOON) != scheduled_execution(JOB, NOON + MICROSECOND)


def test_jobs_that_fire_together_have_different_executions() -> None:
    assert scheduled_execution(JOB, NOON) != scheduled_execution(OTHER_JOB, NOON)


def test_an_id_carries_the_version_and_variant_of_its_kind() -> None:
    execution = scheduled_execution(JOB, NOON)
    assert (execution.version, execution.variant) == (8, "specified in RFC 4122")


def test_the_instant_can_be_read_back_to_the_millisecond() -> None:
    assert instant_of(scheduled_execution(JOB, NOON)) == NOON.replace(microsecond=123000)


def test_a_dead_letter_causes_one_execution_and_not_its_own() -> None:
    dead = scheduled_execution(JOB, NOON)
    assert replayed_execution(dead, NOON) == replayed_execution(dead, NOON) != dead
    assert replayed_execution(scheduled_execution(OTHER_JOB, NOON), NOON) != replayed_execution(
        dead, NOON
    )
    assert instant_of(replayed_execution(dead, NOON)) == NOON.replace(microsecond=123000)


def test_parents_cause_one_execution_in_whatever_order_they_are_named() -> None:
    first, second = ExecutionId(uuid4()), ExecutionId(uuid4())
    one = after_execution(JOB, [first, second], NOON)
    assert after_execution(JOB, [second, first, second], NOON) == one
    assert after_execution(JOB, [first], NOON) != one
    assert after_execution(OTHER_JOB, [first, second], NOON) != one


@pytest.mark.parametrize(
    "other",
    [
        requested_execution(OTHER_TENANT, JOB, "trigger", "ab", NOON),
        requested_execution(TENANT, OTHER_JOB, "trigger", "ab", NOON),
        requested_execution(TENANT, JOB, "enqueue", "ab", NOON),
        requested_execution(TENANT, JOB, "trigger", "abc", NOON),
        requested_execution(TENANT, JOB, "trigger", "ab", NOON + timedelta(milliseconds=1)),
        scheduled_execution(JOB, NOON),
    ],
)
def test_requests_differ_by_each_part_of_their_cause(other: ExecutionId) -> None:
    assert requested_execution(TENANT, JOB, "trigger", "ab", NOON) != other


def test_parts_that_run_together_into_the_same_text_stay_apart() -> None:
    tenant, job = TenantId(UUID(bytes=b"t" * 16)), JobId(UUID(bytes=b"t" * 16))
    one = requested_execution(tenant, job, "t" * 4, "t" * 4, NOON)
    assert requested_execution(tenant, job, "t" * 5, "t" * 3, NOON) != one


def test_a_time_before_1970_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        scheduled_execution(JOB, EPOCH - MICROSECOND)
    assert caught.value.field == "scheduled_time"


def test_the_ends_of_time_have_ids() -> None:
    for at in (EPOCH, datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)):
        assert abs(instant_of(scheduled_execution(JOB, at)) - at) < timedelta(milliseconds=1)


@pytest.mark.parametrize(
    "foreign",
    [
        UUID("550e8400-e29b-41d4-a716-446655440000"),
        UUID("ffffffff-ffff-8fff-bfff-ffffffffffff"),
        UUID(int=0),
    ],
)
def test_an_id_that_foliot_cannot_have_made_is_refused(foreign: UUID) -> None:
    with pytest.raises(InvalidInput) as caught:
        instant_of(ExecutionId(foreign))
    assert caught.value.field == "execution_id"


def test_a_time_without_a_zone_is_an_error() -> None:
    with pytest.raises(TypeError):
        microseconds(datetime(2026, 5, 1))  # noqa: DTZ001  the mistake under test


def test_microseconds_are_exact_to_the_end_of_the_calendar() -> None:
    last = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    assert from_microseconds(microseconds(last)) == last


def test_jobs_made_one_after_the_other_spread_evenly_over_the_shards() -> None:
    counts = [0] * SHARDS
    for number in range(64_000):
        counts[shard_of(JobId(UUID(int=(0x019F << 112) + number)))] += 1
    assert 850 < min(counts) <= max(counts) < 1150
