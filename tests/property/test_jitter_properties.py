"""Jitter stays in its window, keeps the order of instants and is the same at every asking."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.core.ids import JobId
from foliot.core.model import Schedule, ScheduleType
from foliot.core.schedule.jitter import available_at

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
instants = st.timedeltas(timedelta(), timedelta(days=2_000_000)).map(lambda since: EPOCH + since)
gaps = st.timedeltas(timedelta(microseconds=1), timedelta(days=400))


@settings(max_examples=300, deadline=None)
@given(st.uuids(), instants, gaps, st.floats(0, 86_400))
def test_the_shift_is_bounded_and_stable(
    job: UUID, instant: datetime, gap: timedelta, jitter_seconds: float
) -> None:
    schedule = Schedule(ScheduleType.INTERVAL, interval_seconds=60, jitter_seconds=jitter_seconds)
    at = available_at(schedule, JobId(job), instant, instant + gap)
    assert instant <= at < instant + gap
    assert at == instant or at < instant + timedelta(seconds=jitter_seconds)
    assert at == available_at(schedule, JobId(job), instant, instant + gap)
    alone = available_at(schedule, JobId(job), instant, None)
    assert alone == instant or alone < instant + timedelta(seconds=jitter_seconds)
