"""Calendars against an oracle that lists wall times day by day and moves each one by hand."""

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from hypothesis import example, given, settings
from hypothesis import strategies as st

from foliot.core.ids import JobId
from foliot.core.model import (
    CalendarRule,
    DstGap,
    DstOverlap,
    Schedule,
    ScheduleType,
    SkipReason,
)
from foliot.core.schedule.calendar import Calendar, at_wall_time, day_of, day_start, validate
from foliot.core.schedule.occurrences import ScheduleFacts, timeline
from foliot.core.schedule.timeline import Skip, Timeline

JOB = JobId(UUID(int=1))
DAY, MINUTE, TICK = timedelta(days=1), timedelta(minutes=1), timedelta(microseconds=1)
ZONES = ["UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "America/Havana"]
CRONS = [
    "30 2 * * *",
    "0 9 * * SAT",
    "0,30 1-3 * * SUN",
    "15 0 1,15 * *",
    "45 23 L * *",
    "0 9,17 * * MON",
]


@dataclass(frozen=True)
class Case:
    """A schedule under a calendar, looked at for some weeks around a change of clocks."""

    schedule: Schedule
    calendar: Calendar
    start: datetime
    days: int

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.schedule.timezone)

    @property
    def days_of(self) -> ZoneInfo:
        """The zone whose days the calendar names."""
        return ZoneInfo(self.calendar.timezone or self.schedule.timezone)

    @property
    def end(self) -> datetime:
        return self.start + self.days * DAY

    def line(self) -> Timeline:
        facts = ScheduleFacts(JOB, self.start, self.calendar)
        return timeline(self.schedule, facts)


@st.composite
def calendars(draw: st.DrawFn, around: date) -> Calendar:
    near = st.integers(-40, 40).map(lambda days: around + days * DAY)
    return Calendar(
        name="biz",
        rule=draw(st.sampled_from(CalendarRule)),
        excluded_dates=frozenset(draw(st.lists(near, max_size=8))),
        excluded_weekdays=frozenset(draw(st.lists(st.integers(1, 7), max_size=4))),
        excluded_yearly=frozenset({(12, 25)}),
    )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    # The clocks of these zones change in March, April, October or November 2027.
    start = datetime(2027, draw(st.sampled_from([3, 4, 10, 11])), 1, tzinfo=UTC) - draw(
        st.integers(0, 20 * 86_400)
    ) * timedelta(seconds=1)
    zone, gap = draw(st.sampled_from(ZONES)), draw(st.sampled_from(DstGap))
    overlap = draw(st.sampled_from(DstOverlap))
    if draw(st.booleans()):
        schedule = Schedule(
            ScheduleType.CRON,
            cron_expression=draw(st.sampled_from(CRONS)),
            timezone=zone,
            dst_gap=gap,
            dst_overlap=overlap,
            calendar="biz",
        )
    else:
        schedule = Schedule(
            ScheduleType.INTERVAL,
            interval_seconds=60 * draw(st.integers(24 * 60, 5 * 24 * 60)),
            timezone=zone,
            dst_gap=gap,
            dst_overlap=overlap,
            start_at=start,
            calendar="biz",
        )
    return Case(schedule, draw(calendars(start.date())), start, draw(st.integers(10, 50)))


def business_day(calendar: Calendar, day: date) -> date:
    step = DAY if calendar.rule is CalendarRule.NEXT_BUSINESS_DAY else -DAY
    while calendar.excludes(day):
        day += step
    return day


def instants_of(wall: datetime, zone: ZoneInfo) -> list[datetime]:
    """Every instant at which the clocks show this time: none, one or two."""
    read = {wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}
    return sorted(at for at in read if at.astimezone(zone).replace(tzinfo=None, fold=0) == wall)


def resolve(wall: datetime, case: Case, *, one: bool) -> list[tuple[datetime, bool]]:
    """(instant, held) as the policies for changes of clocks have it."""
    found, moved = instants_of(wall, case.days_of), wall
    if not found:
        while not found:
            moved += MINUTE
            found = instants_of(moved, case.days_of)
        return [(found[0], case.schedule.dst_gap is DstGap.SKIP)]
    if case.schedule.dst_overlap is DstOverlap.LAST:
        found = found[-1:]
    elif one or case.schedule.dst_overlap is DstOverlap.FIRST:
        found = found[:1]
    return [(at, False) for at in found]


def wall_times(case: Case) -> list[datetime]:
    """The local times that the cron expression means: its instants in UTC, with UTC left out."""
    plain = Schedule(ScheduleType.CRON, cron_expression=case.schedule.cron_expression)
    line = timeline(plain, ScheduleFacts(JOB, case.start - 60 * DAY))
    times, at = [], case.start - 60 * DAY
    while (found := line.next(at)) is not None and found.instant < case.end + 60 * DAY:
        at = found.instant
        times.append(at.replace(tzinfo=None))
    return times


def expected(case: Case) -> dict[datetime, SkipReason | None]:
    """Every occurrence from start to end, with the reason if it is held."""
    found: dict[datetime, SkipReason | None] = {}
    lower = case.start - TICK if case.schedule.start_at else case.start
    for instant, reason in raw_moves(case):
        runs_already = instant in found and found[instant] is None
        if lower < instant <= case.end and not runs_already:
            found[instant] = reason
    return dict(sorted(found.items()))


def raw_moves(case: Case) -> list[tuple[datetime, SkipReason | None]]:
    skips = case.calendar.rule is CalendarRule.SKIP
    moves: list[tuple[datetime, SkipReason | None]] = []
    if case.schedule.type is ScheduleType.CRON:
        for wall in wall_times(case):
            day = wall.date() if skips else business_day(case.calendar, wall.date())
            for at, held in resolve(datetime.combine(day, wall.time()), case, one=False):
                moves.append((at, reason_of(case, at, held=held)))
        return moves
    at = case.start
    while at < case.end + 60 * DAY:
        local = at.astimezone(case.zone).replace(tzinfo=None)
        day = local.date() if skips else business_day(case.calendar, local.date())
        if day == local.date():
            moves.append((at, reason_of(case, at, held=False)))
        else:
            wall = datetime.combine(day, local.time())
            for moved, held in resolve(wall, case, one=True):
                moves.append((moved, reason_of(case, moved, held=held)))
        at += timedelta(seconds=case.schedule.interval_seconds or 0)
    return moves


def reason_of(case: Case, at: datetime, *, held: bool) -> SkipReason | None:
    if case.calendar.excludes(at.astimezone(case.zone).date()):
        return SkipReason.CALENDAR
    return SkipReason.DST_GAP if held else None


@settings(max_examples=250, deadline=None)
@given(cases())
@example(
    Case(
        Schedule(
            ScheduleType.CRON,
            cron_expression="30 2 * * SUN",
            timezone="America/New_York",
            calendar="biz",
        ),
        Calendar("biz", CalendarRule.NEXT_BUSINESS_DAY, excluded_weekdays=frozenset({6, 7})),
        datetime(2027, 3, 1, tzinfo=UTC),
        30,
    )
)
def test_the_line_is_what_moving_by_hand_gives(case: Case) -> None:
    line, wanted = case.line(), expected(case)
    forward, at = {}, case.start - DAY
    while (found := line.next(at)) is not None and found.instant <= case.end:
        assert found.instant > at
        at = found.instant
        forward[at] = found.skip_reason
    assert forward == wanted

    backward, at = [], case.end + TICK
    while (found := line.previous(at)) is not None:
        at = found.instant
        backward.append((at, found.skip_reason))
    assert backward[::-1] == list(wanted.items())


@settings(max_examples=250, deadline=None)
@given(cases(), st.integers(0, 50 * 86_400), st.integers(0, 50 * 86_400))
def test_counts_and_held_runs_are_those_of_the_listing(case: Case, low: int, high: int) -> None:
    after, until = (case.start + timedelta(seconds=offset) for offset in (low, high))
    until = min(until, case.end)
    line, wanted = case.line(), expected(case)
    inside = {at: reason for at, reason in wanted.items() if after < at <= until}
    assert line.count(after, until) == len(inside)
    held = list(line.held(after, until)) if after < until else []
    assert held == sorted(held, key=lambda run: run.from_)
    assert {at: reason for at, reason in inside.items() if reason} == spread(held, inside)


def spread(
    held: list[Skip], listing: dict[datetime, SkipReason | None]
) -> dict[datetime, SkipReason]:
    """Each instant of the runs, once; the count of a run must be what it covers."""
    found: dict[datetime, SkipReason] = {}
    for run in held:
        covered = [at for at in listing if run.from_ <= at <= run.to]
        assert run.count == len(covered)
        assert covered[0] == run.from_
        assert covered[-1] == run.to
        assert not found.keys() & set(covered)
        found.update(dict.fromkeys(covered, run.reason))
    return found


@settings(max_examples=100, deadline=None)
@given(cases())
def test_what_fires_next_is_the_first_that_is_not_held(case: Case) -> None:
    runs = [at for at, reason in expected(case).items() if reason is None]
    line = case.line()
    first, last = line.next_fire(case.start - DAY), line.previous_fire(case.end + TICK)
    if runs:
        assert first is not None
        assert first.instant == runs[0]
    assert (last.instant if last else None) == (runs[-1] if runs else None)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from([*ZONES, "Asia/Beirut", "America/St_Johns", "America/Scoresbysund"]),
    st.datetimes(datetime.fromisoformat("1985-01-01"), datetime.fromisoformat("2037-01-01")),
)
@example(
    "America/St_Johns", datetime.fromisoformat("2006-10-29T02:30:30")
)  # 00:01 went back to 23:01
def test_every_instant_is_in_the_day_that_day_of_names(name: str, moment: datetime) -> None:
    zone, instant = ZoneInfo(name), moment.replace(tzinfo=UTC)
    day = day_of(zone, instant)
    assert day_start(zone, day) <= instant < day_start(zone, day + DAY)
    begin = day_start(zone, day).astimezone(zone).replace(tzinfo=None)
    assert begin >= datetime.combine(day, time())
    before = (day_start(zone, day) - TICK).astimezone(zone).replace(tzinfo=None)
    assert before < datetime.combine(day, time())


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(ZONES),
    st.datetimes(datetime.fromisoformat("2027-01-01"), datetime.fromisoformat("2028-01-01")).map(
        lambda at: at.replace(second=0, microsecond=0)
    ),
    st.sampled_from(DstOverlap),
)
@example("America/New_York", datetime.fromisoformat("2027-03-14T02:30"), DstOverlap.FIRST)
@example("America/New_York", datetime.fromisoformat("2027-03-14T02:30"), DstOverlap.LAST)
@example("America/New_York", datetime.fromisoformat("2027-11-07T01:30"), DstOverlap.LAST)
def test_a_wall_time_becomes_the_instant_the_policy_picks(
    name: str, wall: datetime, overlap: DstOverlap
) -> None:
    schedule = Schedule(ScheduleType.CRON, timezone=name, dst_overlap=overlap, dst_gap=DstGap.SKIP)
    case = Case(schedule, Calendar("biz"), datetime(2027, 1, 1, tzinfo=UTC), 1)
    assert [at_wall_time(ZoneInfo(name), wall, overlap)] == resolve(wall, case, one=True)


@st.composite
def foreign_cases(draw: st.DrawFn) -> Case:
    """Calendars that count their days elsewhere, and schedules that run in real time."""
    case = draw(cases())
    expressions = ["0 */5 * * SAT", "30 * 1,2 * *", "0 1,23 * * SAT", "0,30 1-3,22 * * FRI-SUN"]
    schedule = case.schedule
    if schedule.type is ScheduleType.CRON:
        schedule = replace(schedule, cron_expression=draw(st.sampled_from(expressions)))
    elsewhere = st.sampled_from([None, "Asia/Tokyo", "America/Scoresbysund", *ZONES])
    calendar = replace(case.calendar, timezone=draw(elsewhere))
    return replace(case, schedule=schedule, calendar=calendar)


def moved_one_by_one(case: Case) -> dict[datetime, SkipReason | None]:
    """What the schedule has without a calendar, each instant moved by hand in the calendar's zone.

    An instant that the job's own clocks hold stays held wherever it goes.
    """
    plain = replace(case.schedule, calendar=None)
    line = timeline(plain, ScheduleFacts(JOB, case.start - 60 * DAY))
    lower = case.start - TICK if case.schedule.start_at else case.start
    found: dict[datetime, SkipReason | None] = {}
    at = case.start - 60 * DAY
    while (one := line.next(at)) is not None and one.instant < case.end + 60 * DAY:
        at = one.instant
        instant, reason = moved_by_hand(case, at, one.skip_reason)
        runs_already = instant in found and found[instant] is None
        if lower < instant <= case.end and not runs_already:
            found[instant] = reason
    return dict(sorted(found.items()))


def moved_by_hand(
    case: Case, at: datetime, reason: SkipReason | None
) -> tuple[datetime, SkipReason | None]:
    local = at.astimezone(case.days_of).replace(tzinfo=None)
    if not case.calendar.excludes(local.date()):
        return at, reason
    if case.calendar.rule is CalendarRule.SKIP:
        return at, SkipReason.CALENDAR
    day = business_day(case.calendar, local.date())
    [(instant, held)] = resolve(datetime.combine(day, local.time()), case, one=True)
    # A gap that ends the day leads to its last second.
    instant = min(instant, day_start(case.days_of, day + DAY) - timedelta(seconds=1))
    return instant, SkipReason.DST_GAP if held else reason


def biz(zone: str, rule: CalendarRule, *weekdays: int) -> Calendar:
    return Calendar("biz", rule, zone, excluded_weekdays=frozenset(weekdays))


@settings(max_examples=400, deadline=None)
@given(foreign_cases().filter(lambda case: case.days_of is not case.zone))
@example(
    Case(
        Schedule(ScheduleType.CRON, cron_expression="0 2,22 * * FRI", calendar="biz"),
        biz("America/New_York", CalendarRule.NEXT_BUSINESS_DAY, 4),
        datetime(2027, 1, 1, tzinfo=UTC),
        30,
    )
)
@example(
    Case(
        Schedule(ScheduleType.CRON, cron_expression="0,30 * * * SAT", calendar="biz"),
        biz("America/Scoresbysund", CalendarRule.NEXT_BUSINESS_DAY, 4, 5),
        datetime(2027, 3, 1, tzinfo=UTC),
        40,
    )
)
def test_a_calendar_of_another_zone_moves_each_instant_as_by_hand(case: Case) -> None:
    line, forward, at = case.line(), {}, case.start - DAY
    while (found := line.next(at)) is not None and found.instant <= case.end:
        at = found.instant
        forward[at] = found.skip_reason
    assert forward == moved_one_by_one(case)


@settings(max_examples=250, deadline=None)
@given(foreign_cases(), st.integers(0, 50 * 86_400))
def test_forwards_backwards_and_counted_are_one_line(case: Case, offset: int) -> None:
    line, middle = case.line(), case.start + timedelta(seconds=offset)
    forward, at = {}, case.start - DAY
    while (found := line.next(at)) is not None and found.instant <= case.end:
        at = found.instant
        forward[at] = found.skip_reason
        excluded = case.calendar.excludes(at.astimezone(case.days_of).date())
        assert excluded == (found.skip_reason is SkipReason.CALENDAR)
    backward, at = [], case.end + TICK
    while (found := line.previous(at)) is not None:
        at = found.instant
        backward.append(at)
    assert backward[::-1] == list(forward)
    assert line.count(middle, case.end) == len([at for at in forward if at > middle])
    held = list(line.held(case.start - DAY, case.end))
    assert spread(held, forward) == {at: reason for at, reason in forward.items() if reason}


@settings(max_examples=10, deadline=None)
@given(calendars(date(2027, 6, 1)))
def test_ordinary_calendars_are_valid(calendar: Calendar) -> None:
    validate(calendar)
