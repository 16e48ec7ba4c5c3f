"""The ledger: every scheduled instant has exactly one outcome, an execution or a skip record.

The outcomes of a job are held against the instants that its schedules had while they were in force.
What has no outcome is missing, what has two is doubled, what the schedule never had is unexpected,
and a skip record that speaks of another number of instants is miscounted. When nothing of that is
found, expected = fired + skipped.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from foliot.core.ids import JobId, TenantId
from foliot.core.model import ScheduleType, SkipReason
from foliot.core.schedule.coverage import Coverage
from foliot.core.schedule.stretches import Standing, Stretch, Window, due, of_version
from foliot.core.schedule.timeline import TICK, Skip, Timeline

PROBLEMS_KEPT: Final = 100
_HELD: Final = frozenset({SkipReason.CALENDAR, SkipReason.DST_GAP})


class ProblemKind(StrEnum):
    MISSING = "MISSING"  # an instant without an outcome
    DOUBLED = "DOUBLED"  # an instant with more than one
    UNEXPECTED = "UNEXPECTED"  # an outcome of an instant that the schedule never had
    MISCOUNTED = "MISCOUNTED"  # a skip record that is not true
    OVERDUE = "OVERDUE"  # an instant that nobody settles, though its time has come
    UNREADABLE = "UNREADABLE"  # a schedule that this Foliot cannot read


@dataclass(frozen=True, slots=True)
class Problem:
    """`count` instants of a job, the first at `from_` and the last at `to`, and what is wrong."""

    kind: ProblemKind
    from_: datetime | None
    to: datetime | None
    count: int
    why: str


@dataclass(frozen=True, slots=True)
class JobLedger:
    """What was found for one job. `found` counts all problems; `problems` has the first of them."""

    job_id: JobId
    tenant_id: TenantId
    name: str
    expected: int = 0
    fired: int = 0
    skipped: int = 0
    due: int = 0
    problems: tuple[Problem, ...] = ()
    found: Mapping[ProblemKind, int] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        return not self.found


class Account:
    """Takes the outcomes of one job, in any order, each once; `close` says whether all is well."""

    def __init__(
        self, standing: Standing, parts: Sequence[Stretch], window: Window, now: datetime
    ) -> None:
        self._standing = standing
        self._parts = parts
        self._by_schedule = {part.schedule_version: part for part in parts}
        self._window = window
        self._now = now
        self._clipped = [part.within(window) for part in parts]
        self._coverage = {
            part.schedule_version: Coverage(part.line, part.after, part.until)
            for part in self._clipped
        }
        self._fired = 0
        self._skipped = 0
        self._found: Counter[ProblemKind] = Counter()
        self._problems: list[Problem] = []

    def add_fire(self, version: int, instant: datetime) -> None:
        """An execution, live or over, that was fired under a version of the job."""
        if not self._window.holds(instant) or version > self._standing.version:
            return
        part = of_version(self._parts, version)
        if part is None:
            why = f"an execution of version {version}, which the job never had"
            self._find(ProblemKind.UNEXPECTED, instant, instant, 1, why)
        elif not self._is_later(part, instant):
            self._add_fire(part, version, instant)

    def add_double(self, instant: datetime) -> None:
        """An execution that is over and live at the same time."""
        if self._window.holds(instant):
            why = "its execution has ended, and another with the same id is under way"
            self._find(ProblemKind.DOUBLED, instant, instant, 1, why)

    def add_skip(self, schedule_version: int, skip: Skip) -> None:
        if skip.to < self._window.from_ or skip.from_ >= self._window.to:
            return
        part = self._by_schedule.get(schedule_version)
        if part is None:
            if schedule_version <= self._parts[-1].schedule_version:
                why = f"a skip record of schedule {schedule_version}, which the job never had"
                self._find(ProblemKind.UNEXPECTED, skip.from_, skip.to, skip.count, why)
        elif part.type is not ScheduleType.AFTER and not self._is_later(part, skip.from_):
            self._add_skip(part, skip)

    def close(self) -> JobLedger:
        for part in self._clipped:
            for first, last, count in self._coverage[part.schedule_version].holes():
                why = f"version {part.version} has it; there is no execution and no skip record"
                self._find(ProblemKind.MISSING, first, last, count, why)
        standing = self._standing
        return JobLedger(
            standing.job_id,
            standing.tenant_id,
            standing.name,
            expected=sum(part.count() for part in self._clipped),
            fired=self._fired,
            skipped=self._skipped,
            due=self._look_ahead(),
            problems=tuple(self._problems),
            found=dict(self._found),
        )

    def _look_ahead(self) -> int:
        """How many instants are due; a problem if nobody settles them."""
        if not self._parts:
            return 0
        found = due(self._parts[-1], self._standing, self._now, self._window)
        if found is None:
            return 0
        if found.overdue:
            why = "its time has come and nobody fires it: does a scheduler run?"
            self._find(ProblemKind.OVERDUE, found.first, found.last, found.count, why)
        return found.count

    def _is_later(self, part: Stretch, instant: datetime) -> bool:
        """Of an instant that was still ahead of the job when we looked at it."""
        ahead = self._standing.next_instant
        return part is self._parts[-1] and ahead is not None and instant >= ahead

    def _add_fire(self, part: Stretch, version: int, instant: datetime) -> None:
        coverage = self._coverage[part.schedule_version]
        found = coverage.find(instant) if part.after < instant <= part.until else None
        if found is None or found.skip_reason is not None:
            held = found and (found.note or f"it is held: {found.skip_reason}")
            why = f"an execution of version {version}: {held or _no_instant(part, instant)}"
            self._find(ProblemKind.UNEXPECTED, instant, instant, 1, why)
        elif coverage.add(instant, instant):
            why = "there are two outcomes: executions, or an execution and a skip record"
            self._find(ProblemKind.DOUBLED, instant, instant, 1, why)
        else:
            self._fired += 1

    def _add_skip(self, part: Stretch, skip: Skip) -> None:
        coverage = self._coverage[part.schedule_version]
        for end in (skip.from_, skip.to):
            if not part.after < end <= part.until or not coverage.find(end):
                why = f"a skip record ({skip.reason}): {_no_instant(part, end)}"
                self._find(ProblemKind.UNEXPECTED, skip.from_, skip.to, skip.count, why)
                return
        if wrong := _miscounted(part.line, skip):
            self._find(ProblemKind.MISCOUNTED, skip.from_, skip.to, skip.count, wrong)
        line = part.line
        first = line.next(max(skip.from_, self._window.from_) - TICK)
        last = line.previous(min(skip.to + TICK, self._window.to))
        if first is None or last is None or first.instant > last.instant:
            return
        self._skipped += line.count(first.instant - TICK, last.instant)
        for from_, to in coverage.add(first.instant, last.instant):
            count = line.count(from_ - TICK, to)
            self._skipped -= count
            why = f"it is on record as skipped ({skip.reason}), and has another outcome besides"
            self._find(ProblemKind.DOUBLED, from_, to, count, why)

    def _find(self, kind: ProblemKind, from_: datetime, to: datetime, count: int, why: str) -> None:
        self._found[kind] += 1
        if len(self._problems) < PROBLEMS_KEPT:
            self._problems.append(Problem(kind, from_, to, count, why))


def unreadable(standing: Standing, error: Exception) -> JobLedger:
    """A job whose schedules this Foliot cannot make sense of: a newer one may have written them."""
    problem = Problem(
        ProblemKind.UNREADABLE, None, None, 0, f"its schedule cannot be read: {error}"
    )
    return JobLedger(
        standing.job_id,
        standing.tenant_id,
        standing.name,
        problems=(problem,),
        found={ProblemKind.UNREADABLE: 1},
    )


def _no_instant(part: Stretch, instant: datetime) -> str:
    """Why a stretch does not have an instant."""
    found = part.line.next(instant - TICK)
    if found is None or found.instant != instant:
        return f"the schedule of version {part.version} has no such instant"
    if instant > part.until:
        return f"the schedule of version {part.version} was no longer in force"
    return f"the schedule of version {part.version} was not in force yet"


def _miscounted(line: Timeline, skip: Skip) -> str | None:
    """What is not true of a record whose ends are on the line."""
    count = line.count(skip.from_ - TICK, skip.to)
    if count != skip.count:
        return f"the record says {skip.count} were skipped; the schedule has {count} there"
    if skip.reason not in _HELD:
        return None
    held = sum(
        run.count for run in line.held(skip.from_ - TICK, skip.to) if run.reason is skip.reason
    )
    if held == count:
        return None
    return f"the record says {skip.reason} for {count}; that is so for {held}"


class Report:
    """The ledgers of many jobs in one: all is counted, and the first `kept` problems are named."""

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self.jobs = 0
        self.bad_jobs = 0
        self.expected = 0
        self.fired = 0
        self.skipped = 0
        self.due = 0
        self.found: Counter[ProblemKind] = Counter()
        self.named: list[tuple[JobLedger, Problem]] = []

    @property
    def holds(self) -> bool:
        return not self.found

    @property
    def truncated(self) -> bool:
        """Whether there are problems that are not named."""
        return len(self.named) < self.found.total()

    def add(self, ledger: JobLedger) -> None:
        self.jobs += 1
        self.bad_jobs += not ledger.holds
        self.expected += ledger.expected
        self.fired += ledger.fired
        self.skipped += ledger.skipped
        self.due += ledger.due
        self.found.update(ledger.found)
        room = self._kept - len(self.named)
        self.named += [(ledger, problem) for problem in ledger.problems[:room]]
