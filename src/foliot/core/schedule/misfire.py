"""Settling: every instant that is due is fired or skipped, exactly once, whatever was missed.

On time, all that is due fires. Once the oldest due instant is over five seconds late there was an
outage or a pause, and the misfire policy acts on the whole of what is due. What fires is always the
newest part of it; what is older is one skip record for each run of instants with one reason. The
cost follows the number of fires and records, not the number of instants.
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
# Excluded days are told apart from missed ones for this long before the first fire; what is older
# is one record. It keeps a settlement to some hundred records however long the outage was.
_TOLD_APART: Final = timedelta(days=400)


@dataclass(frozen=True, slots=True)
class Settlement:
    """fires, oldest first, and skips are all that was due; `next` is what is due after that."""

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
) -> Settlement:
    """Settle every instant in after < instant <= now; None for `after`: from the very first.

    `cause` is the reason that instants are skipped for by the misfire policy or the grace: PAUSED
    when a job resumes. Instants end with the fire that reaches `max_runs`.
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
        settled = _settle_one(schedule, first, now, cause)
        return replace(settled, next=None if settled.fires and left == 1 else second)
    fires = _fires(schedule, line, since, now)
    if left is not None and len(fires) >= left:
        fires = fires[:left]
        return Settlement(fires, _skips(line, since, fires[-1], fires, cause), None)
    return Settlement(fires, _skips(line, since, now, fires, cause), line.next(now))


def _settle_one(
    schedule: Schedule, due: Occurrence, now: datetime, cause: SkipReason
) -> Settlement:
    """The usual case: one instant is due. Only its lateness can be against it."""
    lateness = now - due.instant
    _, late_seconds = _policy(schedule, lateness)
    too_late = late_seconds is not None and lateness > timedelta(seconds=late_seconds)
    reason = due.skip_reason or (cause if too_late else None)
    if reason is None:
        return Settlement((due.instant,), (), None)
    return Settlement((), (Skip(due.instant, due.instant, 1, reason),), None)


def _fires(
    schedule: Schedule, line: Timeline, since: datetime, now: datetime
) -> tuple[datetime, ...]:
    """The newest of the due instants, as many as policy and grace let fire, oldest first."""
    oldest = line.next_fire(since)
    if oldest is None or oldest.instant > now:
        return ()
    most, late_seconds = _policy(schedule, now - oldest.instant)
    too_late = BEGINNING if late_seconds is None else now - timedelta(seconds=late_seconds)
    newest: list[datetime] = []
    found = line.previous_fire(now + TICK)
    while found is not None and since < found.instant and found.instant >= too_late:
        newest.append(found.instant)
        if len(newest) == most:
            break
        found = line.previous_fire(found.instant)
    return tuple(reversed(newest))


def _policy(schedule: Schedule, lateness: timedelta) -> tuple[int | None, float | None]:
    """How many may fire and how late they may be; None is no limit.

    Lateness begins where the jitter ends: whoever runs last in the window is on time. A grace below
    zero lets nothing run at all.
    """
    window, grace = schedule.jitter_seconds, schedule.misfire_grace_seconds
    if grace is not None and grace >= 0:
        grace += window
    recurring = schedule.type in (ScheduleType.CRON, ScheduleType.INTERVAL)
    if not recurring or lateness <= timedelta(seconds=MISFIRE_AFTER_SECONDS + window):
        return None, grace
    match schedule.misfire_policy:
        case MisfirePolicy.FIRE_ONCE:
            return 1, grace
        case MisfirePolicy.FIRE_ALL:
            return schedule.misfire_max_runs, grace
        case MisfirePolicy.SKIP:
            skip_after = SKIP_AFTER_SECONDS + window
            return None, skip_after if grace is None else min(grace, skip_after)


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
