"""Which instants of a job must have an outcome by now: the expected side of the ledger.

The life of a job is cut into stretches, one for each version of its schedule while that was in
force. A stretch begins where the version found the job: a recurring schedule at the edit that
brought it, a single instant wherever it lies, but never at what was settled before. It ends with
the next version, with the fire that reached `max_runs`, or just before the job's next instant.
Stretches follow each other in time and share no instant.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from foliot.core.ids import JobId, TenantId
from foliot.core.model import Schedule, ScheduleType
from foliot.core.schedule.occurrences import BEGINNING, ScheduleFacts, timeline
from foliot.core.schedule.timeline import TICK, Timeline
from foliot.core.states import JobState

# Whatever fires is a little late, and somebody else's turn comes within seconds. After this nobody
# is firing.
OVERDUE_AFTER: Final = timedelta(seconds=60)

_RECURRING: Final = frozenset({ScheduleType.CRON, ScheduleType.INTERVAL})


@dataclass(frozen=True, slots=True)
class Window:
    """The instants that are asked about: from <= instant < to."""

    from_: datetime
    to: datetime

    def holds(self, instant: datetime) -> bool:
        return self.from_ <= instant < self.to


@dataclass(frozen=True, slots=True)
class ScheduleVersion:
    """A schedule, the version of the job that brought it, and where it found the job: how far the
    instants were settled and, in `facts`, how many had fired."""

    version: int
    schedule_version: int
    schedule: Schedule
    facts: ScheduleFacts
    valid_from: datetime
    last_instant: datetime | None


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a job stands in one look at it; everything before `next_instant` is settled."""

    job_id: JobId
    tenant_id: TenantId
    name: str
    status: JobState
    version: int
    next_instant: datetime | None
    next_run_at: datetime | None
    last_instant: datetime | None
    fired_count: int
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Stretch:
    """The instants of `line` in after < instant <= until have an outcome under this version."""

    version: int
    schedule_version: int
    type: ScheduleType
    line: Timeline
    after: datetime
    until: datetime

    def within(self, window: Window) -> "Stretch":
        after, until = max(self.after, window.from_ - TICK), min(self.until, window.to - TICK)
        return replace(self, after=after, until=max(after, until))

    def count(self) -> int:
        return self.line.count(self.after, self.until)


@dataclass(frozen=True, slots=True)
class Due:
    """Instants from `first` to `last` that have come and are not settled yet."""

    count: int
    first: datetime
    last: datetime
    overdue: bool


def stretches(
    versions: Sequence[ScheduleVersion], standing: Standing, now: datetime
) -> tuple[Stretch, ...]:
    """One for each of `versions`, which are all there were up to that of the standing, in order."""
    ends = [*versions[1:], None]
    return tuple(
        Stretch(
            one.version,
            one.schedule_version,
            one.schedule.type,
            timeline(one.schedule, one.facts),
            _beginning(one),
            _end(one, following, standing, now),
        )
        for one, following in zip(versions, ends, strict=True)
    )


def of_version(parts: Sequence[Stretch], version: int) -> Stretch | None:
    """The stretch in which the job had this version."""
    place = bisect_right(parts, version, key=_version)
    return parts[place - 1] if place else None


def due(part: Stretch, standing: Standing, now: datetime, window: Window) -> Due | None:
    """What the last stretch has in store: instants that are due, and whether they are overdue.

    A paused job is not late: its instants are settled when it goes on.
    """
    if standing.next_instant is None or standing.next_run_at is None:
        return None
    low = max(standing.next_instant, window.from_) - TICK
    first, last = part.line.next(low), part.line.previous(window.to)
    count = part.line.count(low, window.to - TICK)
    if not count or first is None or last is None:
        return None
    # A new schedule may begin in the past, and a job goes on with what it has missed.
    fireable = max(standing.next_run_at, standing.updated_at)
    late = standing.status is JobState.ACTIVE and now > fireable + OVERDUE_AFTER
    return Due(count, first.instant, last.instant, late)


def _version(part: Stretch) -> int:
    return part.version


def _beginning(one: ScheduleVersion) -> datetime:
    settled = one.last_instant or BEGINNING
    if one.schedule_version == 1 or one.schedule.type not in _RECURRING:
        return settled
    return max(one.valid_from, settled)


def _end(
    one: ScheduleVersion, following: ScheduleVersion | None, standing: Standing, now: datetime
) -> datetime:
    if following is not None:
        fired, settled = following.facts.fired_count, following.last_instant
        changed = following.valid_from
    else:
        gone = standing.status is JobState.DELETED
        fired, settled = standing.fired_count, standing.last_instant
        changed = standing.updated_at if gone else now
    if one.schedule.max_runs is not None and fired >= one.schedule.max_runs:
        return settled or BEGINNING
    if following is None and standing.next_instant is not None:
        return standing.next_instant - TICK
    # A clock that was set back leaves settled instants ahead of it.
    return max(changed, settled or changed)
