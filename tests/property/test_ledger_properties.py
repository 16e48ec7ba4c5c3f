"""Whatever becomes of a job, its ledger holds; and whatever is taken from it or added, is named."""

from bisect import insort
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.core.ids import EPOCH, JobId, TenantId
from foliot.core.model import (
    CalendarRule,
    DstGap,
    MisfirePolicy,
    Schedule,
    ScheduleType,
    SkipReason,
)
from foliot.core.schedule.calendar import Calendar
from foliot.core.schedule.coverage import Coverage
from foliot.core.schedule.ledger import Account, JobLedger, ProblemKind
from foliot.core.schedule.misfire import settle
from foliot.core.schedule.occurrences import ScheduleFacts, next_occurrence
from foliot.core.schedule.stretches import ScheduleVersion, Standing, Window, stretches
from foliot.core.schedule.timeline import TICK, IntervalLine, Skip
from foliot.core.states import JobState

BEGIN = datetime(2027, 3, 25, 11, 59, 30, tzinfo=UTC)  # three days before clocks go forward
JOB = JobId(UUID(int=7))
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
RECURRING = (ScheduleType.CRON, ScheduleType.INTERVAL)
EVER = Window(EPOCH, datetime(2100, 1, 1, tzinfo=UTC))
WEEKENDS = frozenset({6, 7})
CALENDARS = [Calendar("closed", rule, excluded_weekdays=WEEKENDS) for rule in CalendarRule] + [
    Calendar("closed", excluded_dates=frozenset({date(2027, 3, 26), date(2027, 4, 5)}))
]


@dataclass
class Life:
    """A job as the store would have it, without a store. Overlaps are told, not found."""

    schedule: Schedule
    calendar: Calendar
    now: datetime = BEGIN
    status: JobState = JobState.ACTIVE
    version: int = 0
    next_instant: datetime | None = None
    last_instant: datetime | None = None
    fired_count: int = 0
    versions: list[ScheduleVersion] = field(default_factory=list)
    fires: list[tuple[int, datetime]] = field(default_factory=list)
    skips: list[tuple[int, Skip]] = field(default_factory=list)

    @property
    def facts(self) -> ScheduleFacts:
        return replace(self.versions[-1].facts, fired_count=self.fired_count)

    def begin(self, *, after: datetime | None, counted_from: datetime) -> None:
        self.version += 1
        calendar = self.calendar if self.schedule.calendar else None
        facts = ScheduleFacts(JOB, counted_from, calendar, self.fired_count)
        number = len(self.versions) + 1
        self.versions.append(
            ScheduleVersion(self.version, number, self.schedule, facts, self.now, self.last_instant)
        )
        found = next_occurrence(self.schedule, facts, after)
        self.next_instant = found.instant if found else None
        if self.status is not JobState.PAUSED:
            over = found is None and self.schedule.type is not ScheduleType.MANUAL
            self.status = JobState.COMPLETED if over else JobState.ACTIVE

    def settle(self, cause: SkipReason, overlaps: int = 0) -> None:
        """Fire or skip what is due; every so many fires overlaps."""
        while self.next_instant is not None and self.next_instant <= self.now:
            schedule = self.schedule
            if self.status is JobState.PAUSED:
                schedule = replace(schedule, misfire_grace_seconds=-1)
            due = settle(
                schedule, self.facts, after=self.next_instant - TICK, now=self.now, cause=cause
            )
            number = self.versions[-1].schedule_version
            self.skips += [(number, skip) for skip in due.skips]
            for place, instant in enumerate(due.fires):
                if overlaps and place % overlaps == 0 and self.status is not JobState.PAUSED:
                    self.skips.append((number, Skip(instant, instant, 1, SkipReason.OVERLAP)))
                else:
                    self.fires.append((self.version, instant))
                    self.fired_count += 1
            settled = max([*due.fires[-1:], *(skip.to for skip in due.skips)])
            self.last_instant = max(self.last_instant or settled, settled)
            endless = replace(self.schedule, max_runs=None)
            left = self.facts.runs_left(self.schedule)
            found = None if left == 0 else next_occurrence(endless, self.facts, settled)
            self.next_instant = found.instant if found else None
            if found is None and self.status is JobState.ACTIVE:
                self.status = JobState.COMPLETED

    def pause(self) -> None:
        if self.status is JobState.ACTIVE:
            self.settle(SkipReason.MISFIRE)
        if self.status is JobState.ACTIVE:
            self.status = JobState.PAUSED
            self.version += 1

    def resume(self) -> None:
        if self.status is JobState.PAUSED:
            self.version += 1
            self.status = JobState.ACTIVE if self.next_instant else JobState.COMPLETED
            if self.schedule.type is ScheduleType.MANUAL:
                self.status = JobState.ACTIVE
            self.settle(SkipReason.PAUSED)

    def edit(self, schedule: Schedule, calendar: Calendar) -> None:
        if (schedule, calendar) == (self.schedule, self.calendar):
            return
        self.settle(SkipReason.PAUSED if self.status is JobState.PAUSED else SkipReason.MISFIRE)
        old, self.schedule, self.calendar = self.schedule, schedule, calendar
        same = schedule.type is old.type and schedule.delay_seconds == old.delay_seconds
        counted_from = self.versions[-1].facts.created_at if same else self.now
        after = self.last_instant
        if schedule.type in RECURRING:
            after = max(self.now, after or self.now)
        self.begin(after=after, counted_from=counted_from)

    def delete(self) -> None:
        self.settle(SkipReason.PAUSED if self.status is JobState.PAUSED else SkipReason.MISFIRE)
        self.status, self.next_instant = JobState.DELETED, None
        self.version += 1

    def standing(self) -> Standing:
        return Standing(
            JOB,
            TenantId(UUID(int=1)),
            "job",
            self.status,
            self.version,
            self.next_instant,
            self.next_instant,
            self.last_instant,
            self.fired_count,
            self.now,
        )

    def verify(self, window: Window = EVER) -> JobLedger:
        parts = stretches(self.versions, self.standing(), self.now)
        to = min(window.to, self.now + TICK)
        account = Account(self.standing(), parts, Window(window.from_, to), self.now)
        for version, instant in self.fires:
            account.add_fire(version, instant)
        for number, skip in self.skips:
            account.add_skip(number, skip)
        return account.close()


minutes = st.integers(0, 60 * 24 * 20).map(lambda n: timedelta(minutes=n))
moments = minutes.map(lambda passed: BEGIN - DAY + passed)


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    kind = draw(st.sampled_from([*RECURRING, *RECURRING, *ScheduleType]))
    if kind is ScheduleType.ONE_TIME:
        return Schedule(kind, run_at=draw(moments))
    if kind is ScheduleType.DELAYED:
        return Schedule(kind, delay_seconds=draw(st.sampled_from([0, 0.5, 90, 5000])))
    if kind is ScheduleType.IMMEDIATE:
        return Schedule(kind)
    if kind not in RECURRING:
        return Schedule(ScheduleType.MANUAL)
    start, end = draw(st.none() | moments), draw(st.none() | moments)
    expressions = ["*/20 * * * * *", "30 2 * * *", "0 9 * * 1-5", "H * * * *", "0 12 */2 * *"]
    cron = kind is ScheduleType.CRON
    return Schedule(
        kind,
        cron_expression=draw(st.sampled_from(expressions)) if cron else None,
        interval_seconds=None if cron else draw(st.sampled_from([0.5, 61, 86_400, 100_000])),
        timezone=draw(st.sampled_from(["UTC", "Europe/Berlin"])),
        start_at=start,
        end_at=end if end and (start is None or start < end) else None,
        max_runs=draw(st.sampled_from([None, None, 2, 7])),
        calendar=draw(st.sampled_from([None, "closed"])),
        dst_gap=draw(st.sampled_from(DstGap)),
        misfire_policy=draw(st.sampled_from(MisfirePolicy)),
        misfire_max_runs=draw(st.integers(1, 5)),
        misfire_grace_seconds=draw(st.sampled_from([None, None, 30, 90_000])),
    )


passes = st.sampled_from([0.5, 1, 20, 61, 4000, 100_000, 700_000]).map(lambda s: s * SECOND)
steps = st.one_of(
    st.tuples(st.just("fire"), st.integers(0, 3)),
    st.tuples(st.sampled_from(["pause", "resume"])),
    st.tuples(st.just("edit"), schedules(), st.sampled_from(CALENDARS)),
)


@st.composite
def lives(draw: st.DrawFn) -> Life:
    life = Life(draw(schedules()), draw(st.sampled_from(CALENDARS)))
    life.begin(after=None, counted_from=BEGIN)
    for passed, step in draw(st.lists(st.tuples(passes, steps), max_size=8)):
        life.now += passed
        match step:
            case ("fire", int(overlaps)):
                if life.status is JobState.ACTIVE:
                    life.settle(SkipReason.MISFIRE, overlaps)
            case ("pause",):
                life.pause()
            case ("resume",):
                life.resume()
            case ("edit", Schedule() as schedule, Calendar() as calendar):
                life.edit(schedule, calendar)
            case _:
                raise AssertionError(step)
    if draw(st.booleans()):
        life.delete()
    return life


@settings(deadline=None, max_examples=400)
@given(life=lives(), bounds=st.tuples(moments, moments))
def test_the_ledger_of_any_life_holds(life: Life, bounds: tuple[datetime, datetime]) -> None:
    found = life.verify()
    assert found.problems == ()
    assert found.expected == found.fired + found.skipped
    assert found.fired == len(life.fires)
    assert found.skipped == sum(skip.count for _, skip in life.skips)
    window = Window(min(bounds), max(bounds))
    part = life.verify(window)
    assert part.problems == ()
    assert part.expected == part.fired + part.skipped
    assert part.fired == sum(window.holds(instant) for _, instant in life.fires)


@settings(deadline=None, max_examples=300)
@given(life=lives(), data=st.data())
def test_an_outcome_that_is_gone_is_named(life: Life, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, max(0, len(life.fires) + len(life.skips) - 1)))
    if place < len(life.fires):
        _, instant = life.fires.pop(place)
        gone = (instant, instant, 1)
    elif life.skips:
        _, skip = life.skips.pop(place - len(life.fires))
        gone = (skip.from_, skip.to, skip.count)
    else:
        return
    (problem,) = life.verify().problems
    assert problem.kind is ProblemKind.MISSING
    assert (problem.from_, problem.to, problem.count) == gone


@settings(deadline=None, max_examples=300)
@given(life=lives(), data=st.data(), as_fire=st.booleans())
def test_an_outcome_that_is_there_twice_is_named(
    life: Life, data: st.DataObject, as_fire: bool
) -> None:
    before, kind = life.verify(), ProblemKind.DOUBLED
    if life.fires and (as_fire or not life.skips):
        version, instant = data.draw(st.sampled_from(life.fires))
        twice = (instant, instant, 1)
        life.fires.append((version, instant))
    elif life.skips:
        number, skip = data.draw(st.sampled_from(life.skips))
        if as_fire:
            twice = (skip.from_, skip.from_, 1)
            if skip.reason in (SkipReason.CALENDAR, SkipReason.DST_GAP):
                kind = ProblemKind.UNEXPECTED  # it must not run at all
            life.fires.append((life.versions[number - 1].version, skip.from_))
        else:
            twice = (skip.from_, skip.to, skip.count)
            life.skips.append((number, skip))
    else:
        return
    found = life.verify()
    (problem,) = found.problems
    assert problem.kind is kind
    assert (problem.from_, problem.to, problem.count) == twice
    assert (found.expected, found.fired + found.skipped) == (before.expected, before.expected)


@settings(deadline=None, max_examples=200)
@given(life=lives(), past=st.timedeltas(-DAY, 20 * DAY))
def test_an_outcome_of_no_instant_is_named(life: Life, past: timedelta) -> None:
    known = min(life.now, life.next_instant or life.now) - SECOND
    stray = min(BEGIN + past, known).replace(microsecond=333)
    before = life.verify()
    life.fires.append((1, stray))
    found = life.verify()
    ((kind, number),) = found.found.items()
    assert (kind, number) == (ProblemKind.UNEXPECTED, 1)
    assert found.problems[0].from_ == stray
    assert (found.expected, found.fired) == (before.expected, before.fired)


spans = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9)), max_size=40)


@settings(deadline=None, max_examples=300)
@given(spans=spans)
def test_coverage_says_what_a_list_of_all_instants_would(spans: list[tuple[int, int]]) -> None:
    line = IntervalLine(first=3_000_000, step=1_000_000)
    instants = [EPOCH + n * SECOND for n in range(3, 64)]
    coverage = Coverage(line, EPOCH, instants[-1])
    covered: list[datetime] = []
    for low, length in spans:
        wanted = instants[low : low + length + 1]
        met = coverage.add(wanted[0], wanted[-1])
        again = [at for at in wanted if at in covered]
        assert [at for low, high in met for at in instants if low <= at <= high] == again
        for at in wanted:
            if at not in covered:
                insort(covered, at)
    runs = [at for at in covered if at - SECOND not in covered]
    assert len(coverage) == len(runs)
    holes = list(coverage.holes())
    without = [at for low, high, _ in holes for at in instants if low <= at <= high]
    assert without == [at for at in instants if at not in covered]
    assert sum(count for *_, count in holes) == len(without)
