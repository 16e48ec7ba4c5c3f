"""What a version keeps of a job is read back as it was, after a trip through JSON."""

import json
from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.core.ids import JobId
from foliot.core.model import (
    After,
    AfterMode,
    AfterOn,
    Backoff,
    CalendarRule,
    CommandTarget,
    DstGap,
    DstOverlap,
    HandlerTarget,
    HttpTarget,
    MisfirePolicy,
    OverlapPolicy,
    RetryPolicy,
    Schedule,
    ScheduleType,
    Target,
)
from foliot.core.schedule.calendar import Calendar
from foliot.store.definitions import (
    as_json,
    calendar_as_json,
    calendar_from_json,
    retry_policy_from_json,
    schedule_as_json,
    schedule_from_json,
    target_as_json,
    target_from_json,
)

times = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - hypothesis adds the zone
numbers = st.floats(0, 1e9)
words = st.text(max_size=5)
texts = st.dictionaries(words, words, max_size=2)
afters = st.builds(
    After,
    st.lists(st.uuids().map(JobId), min_size=1, max_size=2).map(tuple),
    st.sampled_from(AfterMode),
    st.sampled_from(AfterOn),
)
schedules = st.builds(
    Schedule,
    type=st.sampled_from(ScheduleType),
    cron_expression=st.none() | words,
    timezone=words,
    interval_seconds=st.none() | numbers,
    run_at=st.none() | times,
    delay_seconds=st.none() | numbers,
    after=st.none() | afters,
    start_at=st.none() | times,
    end_at=st.none() | times,
    max_runs=st.none() | st.integers(1, 9),
    jitter_seconds=numbers,
    calendar=st.none() | words,
    dst_gap=st.sampled_from(DstGap),
    dst_overlap=st.sampled_from(DstOverlap),
    misfire_policy=st.sampled_from(MisfirePolicy),
    misfire_max_runs=st.integers(1, 9),
    misfire_grace_seconds=st.none() | numbers,
    overlap_policy=st.sampled_from(OverlapPolicy),
)
targets = st.one_of(
    st.builds(HttpTarget, words, words, texts),
    st.builds(HandlerTarget, words),
    st.builds(CommandTarget, st.lists(words, max_size=3).map(tuple), texts),
)
calendars = st.builds(
    Calendar,
    words,
    st.sampled_from(CalendarRule),
    st.none() | words,
    st.frozensets(st.dates(), max_size=3),
    st.frozensets(st.integers(1, 7)),
    st.frozensets(st.tuples(st.integers(1, 12), st.integers(1, 28)), max_size=3),
)
policies = st.builds(
    RetryPolicy,
    max_attempts=st.integers(1, 9),
    backoff=st.sampled_from(Backoff),
    initial_delay_seconds=numbers,
    poison_window_seconds=st.none() | numbers,
)


def stored(written: object) -> Any:  # noqa: ANN401 - JSON
    return json.loads(json.dumps(written, allow_nan=False))


@settings(deadline=None, max_examples=200)
@given(schedules)
def test_a_schedule_is_read_back(schedule: Schedule) -> None:
    assert schedule_from_json(stored(schedule_as_json(schedule))) == schedule


@settings(deadline=None)
@given(targets)
def test_a_target_is_read_back(target: Target) -> None:
    assert target_from_json(stored(target_as_json(target))) == target


@settings(deadline=None)
@given(calendars)
def test_a_calendar_is_read_back(calendar: Calendar) -> None:
    assert calendar_from_json(stored(calendar_as_json(calendar))) == calendar


@settings(deadline=None)
@given(policies)
def test_a_retry_policy_is_read_back(policy: RetryPolicy) -> None:
    assert retry_policy_from_json(stored(as_json(policy))) == policy


def test_what_an_older_version_did_not_know_has_its_default() -> None:
    assert schedule_from_json({"type": "MANUAL"}) == Schedule(ScheduleType.MANUAL)
    assert retry_policy_from_json({}) == RetryPolicy()
