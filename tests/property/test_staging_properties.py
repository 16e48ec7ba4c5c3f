"""A herd that settles as one settles as each of its jobs would."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.core.ids import JobId, TenantId
from foliot.core.model import CalendarRule, MisfirePolicy, Schedule, ScheduleType, SkipReason
from foliot.core.schedule.calendar import Calendar
from foliot.core.schedule.misfire import settle
from foliot.core.schedule.occurrences import ScheduleFacts, next_occurrence
from foliot.core.schedule.timeline import TICK
from foliot.store.staging import DueJob, settle_due

NOON = datetime(2027, 3, 27, 12, tzinfo=UTC)  # the day before the clocks change
OFF = Calendar("off", CalendarRule.SKIP, None, frozenset({date(2027, 3, 28)}), frozenset({6}))

SCHEDULES = st.builds(
    Schedule,
    type=st.just(ScheduleType.CRON),
    cron_expression=st.sampled_from(
        [
            "* * * * *",
            "*/5 * * * * *",
            "30 2 * * *",
            "H * * * *",
            "@hourly",
            "@daily",
            "0 9 * * THU",
        ]
    ),
    timezone=st.sampled_from(["UTC", "Europe/Zurich", "America/New_York"]),
    calendar=st.sampled_from([None, "off"]),
    max_runs=st.sampled_from([None, 1, 5]),
    start_at=st.sampled_from([None, NOON + timedelta(hours=3)]),
    end_at=st.sampled_from([None, NOON + timedelta(hours=30)]),
    misfire_policy=st.sampled_from(MisfirePolicy),
    misfire_grace_seconds=st.sampled_from([None, 2.0]),
    jitter_seconds=st.sampled_from([0, 40, 7200]),
)


@settings(max_examples=1000, deadline=None)
@given(
    SCHEDULES,
    st.integers(1, 3),
    st.sampled_from([timedelta(days=-1), timedelta(), timedelta(hours=1)]),
    st.sampled_from([timedelta(), timedelta(seconds=1), timedelta(seconds=7), timedelta(hours=2)]),
    st.integers(0, 4),
)
def test_what_is_shared_is_what_each_would_settle(
    schedule: Schedule, number: int, created: timedelta, late: timedelta, fired_count: int
) -> None:
    job_id = JobId(UUID(int=number))
    calendar = OFF if schedule.calendar else None
    facts = ScheduleFacts(job_id, NOON + created, calendar, fired_count)
    first = next_occurrence(schedule, replace(facts, created_at=NOON, fired_count=0), None)
    if first is None:
        return
    instant, now = first.instant, first.instant + late
    due = DueJob(job_id, TenantId(UUID(int=9)), "q", instant, instant, 1, schedule, facts)
    alone = settle(schedule, facts, after=instant - TICK, now=now, cause=SkipReason.MISFIRE)
    fire = settle_due(due, now)
    if fire is None:
        assert not alone.fires + alone.skips
        return
    assert tuple(each.instant for each in fire.fires) == alone.fires
    assert fire.skips == alone.skips
    if schedule.max_runs is None:
        assert fire.next_instant == (alone.next.instant if alone.next else None)
