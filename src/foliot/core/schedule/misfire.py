"""Settling: every instant that is due is fired or skipped, exactly once, whatever was missed.

On time, all that is due fires. Once the oldest due instant is over five seconds late there was an
outage or a pause, and the misfire policy acts on the whole of what is due. What fires is always the
newest part of it; what is older is one skip record for each run of instants with one reason. The
cost follows the number of fires and records, not the number of instants; and of the fires a
settlement has the oldest thousand. What comes after those stays due, for the next settlement.
"""

from bisect import bisect
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from foliot.core.model import MisfirePolicy, Schedule, ScheduleType, SkipReason
from foliot.core.schedule.occurrences import BEGINNING, ScheduleFacts, timeline
from foliot.core.schedule.timeline import TICK, Occurrence, Skip, Timeline

# Up to here lateness is the pace of a busy scheduler, not an outage.
MISFIRE_AFTER_SECONDS: Final = 5
SKIP_AFTER_SECONDS: Final = 60
# 10 to 40 ms of work with all that it takes to write them. One job can owe more: every millisecond
# for the 5 s that are on time, or for the 60 s of SKIP; misfire_max_runs goes up to 10,000.
FIRES_AT_ONCE: Final = 1000
# Excluded days are told apart from missed ones for this long before the first fire; what is older
# is one record. It keeps a settlement to some hundred records however long the outage was.
_TOLD_APART: Final = timedelta(days=400)


@dataclass(frozen=True, slots=True)
class Settlement:
    """fires, oldest first, and skips are all that was due, up to the thousandth fire; `next` comes
    after that, and may be due as well."""

    fires: tuple[datetime, ...]
    skips: tuple[Skip, ...]
    next: Occurrence | None


def settle(
    schedule: Schedule,
    facts: ScheduleFacts,
    *,
    after: datetime | None,
    now: datetime,
    cause: SkipReason = SkipReason.MISFIRE,
    at_once: int = FIRES_AT_ONCE,
) -> Settlement:
    """Settle every instant in after < instant <= now; None for `after`: from the very first.

    `cause` is the reason that instants are skipped for by the misfire policy or the grace: PAUSED
    when a job resumes. Instants end with the fire that reaches `max_runs`. Where more than
    `at_once` are to fire it ends with the last of those: settle again from there.
    """
    left = facts.runs_left(schedule)
    if left == 0:
        return Settlement((), (), None)
    line = timeline(schedule, facts)
    since = after or BEGINNING
    first = line.next(since)
    if first is None or first.instant > now:
        return Settlement((), (), first)
    second = line.next(first.instant)
    if second is None or second.instant > now:
        settled = _settle_one(schedule, line, first, now, cause)
        return replace(settled, next=None if settled.fires and left == 1 else second)
    fires, until = _fires(schedule, line, since, now, min(left or at_once, at_once))
    if left is not None and len(fires) >= left:
        return Settlement(fires, _skips(line, since, fires[-1], fires, cause), None)
    return Settlement(fires, _skips(line, since, until, fires, cause), line.next(until))


def _settle_one(
    schedule: Schedule, line: Timeline, due: Occurrence, now: datetime, cause: SkipReason
) -> Settlement:
    """The usual case: one instant is due. Only its lateness can be against it."""
    most, earliest = _policy(schedule, line, due.instant, now)
    too_late = most == 0 or due.instant < earliest
    reason = due.skip_reason or (cause if too_late else None)
    if reason is None:
        return Settlement((due.instant,), (), None)
    return Settlement((), (Skip(due.instant, due.instant, 1, reason),), None)


def _fires(
    schedule: Schedule, line: Timeline, since: datetime, now: datetime, at_once: int
) -> tuple[tuple[datetime, ...], datetime]:
    """The newest of the due instants, as many as policy and grace let fire; of these the oldest
    `at_once`, in order, and up to when that settles everything."""
    oldest = line.next_fire(since)
    if oldest is None or oldest.instant > now:
        return (), now
    newest = line.previous_fire(now + TICK)
    if newest is None:
        return (), now
    most, earliest = _policy(schedule, line, oldest.instant, now)
    low = max(since + TICK, earliest) - TICK
    # To go back by 10,000 costs 20 to 150 ms, to count them a millisecond or two.
    if most is None or (most > FIRES_AT_ONCE and line.count(low, now) <= most):
        fires = _oldest(line, low, newest.instant, at_once)
    else:
        fires = _newest(line, low, newest, most)[:at_once]
    is_all = not fires or fires[-1] == newest.instant
    return tuple(fires), now if is_all else fires[-1]


def _oldest(line: Timeline, low: datetime, until: datetime, most: int) -> list[datetime]:
    """The first that run in low < instant <= until."""
    found = line.next_fire(low)
    fires: list[datetime] = []
    while found is not None and found.instant <= until and len(fires) < most:
        fires.append(found.instant)
        found = line.next_fire(found.instant)
    return fires


def _newest(line: Timeline, low: datetime, last: Occurrence, most: int) -> list[datetime]:
    """The last that run in low < instant, oldest first, up to the one that is known."""
    found: Occurrence | None = last if most else None
    fires: list[datetime] = []
    while found is not None and low < found.instant:
        fires.append(found.instant)
        if len(fires) == most:
            break
        found = line.previous_fire(found.instant)
    return fires[::-1]


def _policy(
    schedule: Schedule, line: Timeline, oldest: datetime, now: datetime
) -> tuple[int | None, datetime]:
    """How many may fire, None is no limit, and from which instant on. A grace below zero lets
    nothing run at all."""
    grace = schedule.misfire_grace_seconds
    if grace is not None and grace < 0:
        return 0, BEGINNING
    recurring = schedule.type in (ScheduleType.CRON, ScheduleType.INTERVAL)
    most: int | None = None
    if recurring and oldest < _not_late(schedule, line, now, MISFIRE_AFTER_SECONDS):
        match schedule.misfire_policy:
            case MisfirePolicy.FIRE_ONCE:
                most = 1
            case MisfirePolicy.FIRE_ALL:
                most = schedule.misfire_max_runs
            case MisfirePolicy.SKIP:
                grace = SKIP_AFTER_SECONDS if grace is None else min(grace, SKIP_AFTER_SECONDS)
    return most, BEGINNING if grace is None else _not_late(schedule, line, now, grace)


def _not_late(schedule: Schedule, line: Timeline, now: datetime, seconds: float) -> datetime:
    """From here on instants are at most so many seconds late.

    Lateness begins where the window of the jitter ends, which is at the next instant at the latest:
    whoever runs last in it is on time.
    """
    end = now - timedelta(seconds=seconds)
    if not schedule.jitter_seconds:
        return end
    uncut = end - timedelta(seconds=schedule.jitter_seconds)
    passed = line.previous(end)
    return uncut if passed is None else max(uncut, passed.instant)


def _skips(
    line: Timeline,
    since: datetime,
    until: datetime,
    fires: tuple[datetime, ...],
    cause: SkipReason,
) -> tuple[Skip, ...]:
    """All that is due and does not fire. Before the first fire that is everything; after it only
    what is held, since the fires are the newest that could run."""
    missed_until = fires[0] - TICK if fires else until
    told_apart = max(since, missed_until - _TOLD_APART)
    rows = _Rows(line, fires, cause)
    rows.add_missed(since, told_apart)
    position = told_apart
    for run in line.held(told_apart, until):
        rows.add_missed(position, min(run.from_ - TICK, missed_until))
        rows.add(run)
        position = run.to
    rows.add_missed(position, missed_until)
    return tuple(rows.skips)


class _Rows:
    """Skip records in the making: a run that continues the one before it becomes part of it."""

    def __init__(self, line: Timeline, fires: tuple[datetime, ...], cause: SkipReason) -> None:
        self.skips: list[Skip] = []
        self._line, self._fires, self._cause = line, fires, cause

    def add_missed(self, after: datetime, until: datetime) -> None:
        if until <= after or not (count := self._line.count(after, until)):
            return
        first, last = self._line.next(after), self._line.previous(until + TICK)
        if first and last:
            self.add(Skip(first.instant, last.instant, count, self._cause))

    def add(self, run: Skip) -> None:
        last = self.skips[-1] if self.skips else None
        if last and last.reason is run.reason and not self._fire_between(last.to, run.from_):
            run = Skip(last.from_, run.to, last.count + run.count, run.reason)
            self.skips.pop()
        self.skips.append(run)

    def _fire_between(self, low: datetime, high: datetime) -> bool:
        return bisect(self._fires, low) < bisect(self._fires, high)
