"""Settling against a naive listing of all instants, in one step and in many."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.core.ids import JobId
from foliot.core.model import (
    CalendarRule,
    DstGap,
    MisfirePolicy,
    Schedule,
    ScheduleType,
    SkipReason,
)
from foliot.core.schedule.calendar import Calendar
from foliot.core.schedule.jitter import window
from foliot.core.schedule.misfire import Settlement, settle
from foliot.core.schedule.occurrences import ScheduleFacts, next_occurrence, occurrences
from foliot.core.schedule.timeline import TICK, Occurrence, Skip

JOB = JobId(UUID(int=1))
CREATED = datetime(2027, 3, 10, 11, 59, 30, tzinfo=UTC)  # New York's clocks change four days later
SPAN_SECONDS = 12 * 86_400
CRONS = ["*/20 * * * *", "30 2 * * *", "*/15 2,9 * * *", "0 9 * * MON-FRI", "0 0 1 1 *"]
INTERVALS = [977.7, 3600, 86_400, 100_000]
RECURRING = (ScheduleType.CRON, ScheduleType.INTERVAL)


def moment(seconds: float) -> datetime:
    return CREATED + timedelta(seconds=seconds)


moments = st.one_of(
    st.integers(-10, SPAN_SECONDS).map(moment),
    # On a round minute, and a little after it: where instants are on time.
    st.builds(
        lambda minute, late: moment(60 * minute + 30 + late),
        st.integers(0, SPAN_SECONDS // 60),
        st.sampled_from([0, 0.000001, 1, 5, 5.000001, 59, 60, 60.000001]),
    ),
)

# Left to chance alone, next to nothing is due in most examples.
later_moments = st.one_of(moments, st.integers(SPAN_SECONDS // 2, SPAN_SECONDS).map(moment))


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    kind = draw(st.sampled_from([*RECURRING, *RECURRING, ScheduleType.ONE_TIME]))
    common = Schedule(
        kind,
        misfire_policy=draw(st.sampled_from(MisfirePolicy)),
        misfire_max_runs=draw(st.integers(1, 8)),
        misfire_grace_seconds=draw(st.sampled_from([None, None, 0, 3, 90, 7200, 200_000])),
        # Shorter than the way to the next instant, or as long, or far beyond it.
        jitter_seconds=draw(st.sampled_from([0, 0, 0.5, 30, 977.7, 1200, 86_400])),
    )
    if kind is ScheduleType.ONE_TIME:
        return replace(common, run_at=draw(moments))
    common = replace(
        common,
        timezone=draw(st.sampled_from(["UTC", "America/New_York"])),
        dst_gap=draw(st.sampled_from(DstGap)),
        max_runs=draw(st.sampled_from([None, None, 1, 3, 10])),
        calendar=draw(st.sampled_from([None, "biz"])),
        start_at=draw(st.one_of(st.none(), moments)),
    )
    if draw(st.booleans()):
        end = (common.start_at or CREATED) + timedelta(seconds=draw(st.integers(1, SPAN_SECONDS)))
        common = replace(common, end_at=end)
    if kind is ScheduleType.CRON:
        return replace(common, cron_expression=draw(st.sampled_from(CRONS)))
    return replace(common, interval_seconds=draw(st.sampled_from(INTERVALS)))


facts_of_jobs = st.builds(
    lambda rule, weekdays: ScheduleFacts(
        JOB, CREATED, Calendar("biz", rule, excluded_weekdays=frozenset(weekdays))
    ),
    st.sampled_from(CalendarRule),
    st.sets(st.integers(1, 7), max_size=5),
)


def listing(
    schedule: Schedule, facts: ScheduleFacts, after: datetime | None, now: datetime
) -> list[Occurrence]:
    """Every occurrence that is due, one by one, whatever `max_runs` says."""
    due = []
    for one in occurrences(replace(schedule, max_runs=None), facts, after):
        if one.instant > now:
            break
        due.append(one)
    return due


def lateness(
    schedule: Schedule, due: list[Occurrence], following: Occurrence | None, now: datetime
) -> dict[Occurrence, float]:
    """Of each, counted from where its own window ends."""
    return {
        one: (
            now - one.instant - window(schedule, one.instant, after.instant if after else None)
        ).total_seconds()
        for one, after in pairwise([*due, following])
        if one is not None
    }


def naive_fires(
    schedule: Schedule, due: list[Occurrence], late: dict[Occurrence, float]
) -> list[Occurrence]:
    runnable = [one for one in due if one.skip_reason is None]
    grace = schedule.misfire_grace_seconds
    fires = [one for one in runnable if grace is None or late[one] <= grace]
    on_time = not runnable or late[runnable[0]] <= 5
    if on_time or schedule.type not in RECURRING:
        return fires
    match schedule.misfire_policy:
        case MisfirePolicy.FIRE_ONCE:
            return fires[-1:]
        case MisfirePolicy.FIRE_ALL:
            return fires[-schedule.misfire_max_runs :]
        case MisfirePolicy.SKIP:
            return [one for one in fires if late[one] <= 60]


def naive_settle(
    schedule: Schedule,
    facts: ScheduleFacts,
    after: datetime | None,
    now: datetime,
    cause: SkipReason,
) -> Settlement:
    due = listing(schedule, facts, after, now)
    following = next_occurrence(replace(schedule, max_runs=None), facts, max(now, after or now))
    fires = naive_fires(schedule, due, lateness(schedule, due, following, now))
    left = None if schedule.max_runs is None else max(0, schedule.max_runs - facts.fired_count)
    if left is not None and len(fires) >= left:
        fires = fires[:left]
        due = [one for one in due if fires and one.instant <= fires[-1].instant]
        following = None
    skips: list[Skip] = []
    broken = True
    for one in due:
        if one in fires:
            broken = True
            continue
        reason = one.skip_reason or cause
        if not broken and skips[-1].reason is reason:
            skips[-1] = replace(skips[-1], to=one.instant, count=skips[-1].count + 1)
        else:
            skips.append(Skip(one.instant, one.instant, 1, reason))
        broken = False
    return Settlement(tuple(one.instant for one in fires), tuple(skips), following)


@settings(max_examples=1000, deadline=None)
@given(
    schedules(),
    facts_of_jobs,
    st.one_of(st.none(), moments),
    later_moments,
    st.sampled_from([SkipReason.MISFIRE, SkipReason.PAUSED]),
    st.integers(0, 3),
)
def test_a_settlement_is_that_of_the_naive_listing(
    schedule: Schedule,
    facts: ScheduleFacts,
    after: datetime | None,
    now: datetime,
    cause: SkipReason,
    fired_count: int,
) -> None:
    facts = replace(facts, fired_count=fired_count)
    settled = settle(schedule, facts, after=after, now=now, cause=cause)
    assert settled == naive_settle(schedule, facts, after, now, cause)


def catching_up(schedule: Schedule) -> Schedule:
    """The same, and most of what is due fires."""
    eager = replace(schedule, misfire_policy=MisfirePolicy.FIRE_ALL, misfire_grace_seconds=None)
    return replace(eager, start_at=None, end_at=None)


@settings(max_examples=500, deadline=None)
@given(
    st.one_of(schedules(), schedules().map(catching_up)),
    facts_of_jobs,
    st.one_of(st.none(), moments),
    later_moments,
    st.integers(0, 3),
    st.integers(1, 5),
)
def test_a_few_at_once_are_in_the_end_what_all_at_once_are(
    schedule: Schedule,
    facts: ScheduleFacts,
    after: datetime | None,
    now: datetime,
    fired_count: int,
    at_once: int,
) -> None:
    facts = replace(facts, fired_count=fired_count)
    whole = settle(schedule, facts, after=after, now=now)
    parts = [settle(schedule, facts, after=after, now=now, at_once=at_once)]
    while (following := parts[-1].next) is not None and following.instant <= now:
        fired = fired_count + sum(len(part.fires) for part in parts)
        facts, after = replace(facts, fired_count=fired), following.instant - TICK
        parts.append(settle(schedule, facts, after=after, now=now, at_once=at_once))
    assert all(len(part.fires) <= at_once for part in parts)
    fires = tuple(instant for part in parts for instant in part.fires)
    skips = tuple(skip for part in parts for skip in part.skips)
    assert Settlement(fires, skips, parts[-1].next) == whole


@settings(max_examples=300, deadline=None)
@given(schedules(), facts_of_jobs, st.lists(moments, min_size=1, max_size=12))
def test_settling_in_many_steps_covers_every_instant_once(
    schedule: Schedule, facts: ScheduleFacts, times: list[datetime]
) -> None:
    fired: list[datetime] = []
    skipped: list[Skip] = []
    after = None
    for now in sorted(times):
        current = replace(facts, fired_count=len(fired))
        settled = settle(schedule, current, after=after, now=now)
        fired += settled.fires
        skipped += settled.skips
        after = now
    due = [one.instant for one in listing(schedule, facts, None, max(times))]
    if schedule.max_runs is not None and len(fired) >= schedule.max_runs:
        assert len(fired) == schedule.max_runs
        due = [instant for instant in due if instant <= fired[-1]]
    covered = list(fired)
    for skip in skipped:
        inside = [at for at in due if skip.from_ <= at <= skip.to]
        assert skip.count == len(inside)
        covered += inside
    assert sorted(covered) == due


@settings(max_examples=300, deadline=None)
@given(schedules(), facts_of_jobs, st.one_of(st.none(), moments))
def test_occurrences_increase_within_start_and_end(
    schedule: Schedule, facts: ScheduleFacts, after: datetime | None
) -> None:
    instants, runs = [], 0
    for one in occurrences(schedule, facts, after):
        instants.append(one.instant)
        runs += one.skip_reason is None
        if len(instants) == 50:
            break
    assert instants == sorted(set(instants))
    if schedule.max_runs is not None:
        assert runs <= schedule.max_runs
    for instant in instants:
        assert after is None or instant > after
        assert schedule.start_at is None or instant >= schedule.start_at
        assert schedule.end_at is None or instant < schedule.end_at


@settings(max_examples=200, deadline=None)
@given(schedules(), facts_of_jobs, moments)
def test_nothing_due_means_nothing_settled(
    schedule: Schedule, facts: ScheduleFacts, now: datetime
) -> None:
    """A second settlement of the same moment changes nothing, also if the clock is behind."""
    for earlier in (timedelta(), timedelta(seconds=30)):
        settled = settle(schedule, facts, after=now, now=now - earlier)
        assert settled == Settlement((), (), next_occurrence(schedule, facts, now))
