from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.core.ids import (
    SHARDS,
    JobId,
    TenantId,
    from_microseconds,
    instant_of,
    microseconds,
    requested_execution,
    scheduled_execution,
    shard_of,
)

JOBS = st.uuids().map(JobId)
TENANTS = st.uuids().map(TenantId)
INSTANTS = st.datetimes(min_value=datetime(1970, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
CAUSES = st.tuples(TENANTS, JOBS, st.sampled_from(["trigger", "enqueue", "t"]), st.text("tre"))


@settings(deadline=None)
@given(JOBS, INSTANTS)
def test_the_same_cause_always_has_the_same_id(job: JobId, instant: datetime) -> None:
    execution = scheduled_execution(job, instant)
    assert execution == scheduled_execution(job, instant)
    assert (execution.version, execution.variant) == (8, "specified in RFC 4122")
    assert timedelta(0) <= instant - instant_of(execution) < timedelta(milliseconds=1)


@settings(deadline=None)
@given(JOBS, st.lists(INSTANTS, min_size=2, max_size=20, unique=True))
def test_different_instants_have_different_ids_that_sort_by_time(
    job: JobId, instants: list[datetime]
) -> None:
    ids = [scheduled_execution(job, instant) for instant in instants]
    assert len(set(ids)) == len(ids)
    by_id = [instant_of(each) for each in sorted(ids)]
    assert by_id == sorted(by_id)


@settings(deadline=None)
@given(CAUSES, CAUSES, INSTANTS)
def test_two_requests_share_an_id_only_if_they_are_the_same(
    one: tuple[TenantId, JobId, str, str], other: tuple[TenantId, JobId, str, str], at: datetime
) -> None:
    same_parents = (*one[:2], *other[2:])
    ids_equal = requested_execution(*one, at) == requested_execution(*same_parents, at)
    assert ids_equal == (one == same_parents)


@settings(deadline=None)
@given(JOBS)
def test_every_job_has_one_shard(job: JobId) -> None:
    assert 0 <= shard_of(job) < SHARDS


@settings(deadline=None)
@given(st.datetimes(timezones=st.just(UTC)))
def test_microseconds_keep_every_digit(at: datetime) -> None:
    assert from_microseconds(microseconds(at)) == at
