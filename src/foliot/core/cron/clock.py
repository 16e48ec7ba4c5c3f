"""From matching wall times to real instants in a zone.

A wall time that a spring night leaves out becomes one instant, the first after the gap, however
many fell into it; a real match at that instant stands for them all. Of a wall time that an autumn
night has twice, the overlap policy picks the pass. Expressions whose hour field begins with `*` run
in real time: each real instant whose wall time matches, and no policy applies.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from foliot.core.cron.expression import Cron
from foliot.core.cron.wall import count_walls, next_wall, previous_wall
from foliot.core.model import DstGap, DstOverlap
from foliot.core.zones import DAY, EARLIEST, EPOCH, LATEST, Stretch, stretch_at

# Offsets stay under a day, so wall times repeat only within two days of a change.
_REPEAT: Final = 2 * DAY


@dataclass(frozen=True, slots=True)
class CronInstant:
    """One instant of a cron schedule."""

    at: datetime
    moved_from: datetime | None = None  # naive: the first wall time the gap swallowed
    in_gap: bool = False  # it stands for wall times that do not exist
    skipped: bool = False  # and the gap policy says it is recorded, not fired


def next_instant(
    cron: Cron, zone: ZoneInfo, after: datetime, gap: DstGap, overlap: DstOverlap
) -> CronInstant | None:
    """The first instant strictly after `after`, or None if none is left before the year 10000."""
    instant = _floor_of(after - EPOCH) + 1
    while instant <= LATEST:
        stretch = stretch_at(zone, instant)
        offset = stretch.offset
        first_wall, end_wall = _walls(cron, stretch, overlap)
        wall = next_wall(cron, max(instant + offset, first_wall))
        if instant == stretch.start and wall != instant + offset:
            swallowed = _swallowed(cron, stretch)
            if swallowed is not None:
                return _out_of_gap(stretch, swallowed, gap)
        if wall is None:
            return None
        if wall < end_wall:
            return CronInstant(_moment(wall - offset))
        jump = stretch.end - instant >= _REPEAT
        instant = max(stretch.end, wall - DAY) if jump else stretch.end
    return None


def previous_instant(
    cron: Cron, zone: ZoneInfo, before: datetime, gap: DstGap, overlap: DstOverlap
) -> CronInstant | None:
    """The last instant strictly before `before`, or None if there is none from the year 1 on."""
    instant = -_floor_of(EPOCH - before) - 1
    while instant >= EARLIEST:
        stretch = stretch_at(zone, instant)
        offset = stretch.offset
        first_wall, end_wall = _walls(cron, stretch, overlap)
        wall = previous_wall(cron, min(instant + offset, end_wall - 1))
        if wall is not None and wall >= first_wall:
            return CronInstant(_moment(wall - offset))
        swallowed = _swallowed(cron, stretch)
        if swallowed is not None:
            return _out_of_gap(stretch, swallowed, gap)
        if wall is None:
            return None
        jump = instant - stretch.start >= _REPEAT
        instant = min(stretch.start - 1, wall + DAY) if jump else stretch.start - 1
    return None


def count_instants(
    cron: Cron,
    zone: ZoneInfo,
    after: datetime,
    until: datetime,
    gap: DstGap,  # noqa: ARG001  an instant out of a gap counts, fired or recorded as skipped
    overlap: DstOverlap,
) -> int:
    """How many instants lie in after < t <= until, those out of a gap included."""
    instant, end = _floor_of(after - EPOCH) + 1, _floor_of(until - EPOCH) + 1
    count = 0
    while instant < end:
        stretch = stretch_at(zone, instant)
        offset = stretch.offset
        first_wall, end_wall = _walls(cron, stretch, overlap)
        start = max(instant + offset, first_wall)
        count += count_walls(cron, start, min(end + offset, end_wall))
        if (
            instant == stretch.start
            and _swallowed(cron, stretch) is not None
            and next_wall(cron, start) != instant + offset
        ):
            count += 1
        instant = stretch.end
    return count


def _walls(cron: Cron, stretch: Stretch, overlap: DstOverlap) -> tuple[int, int]:
    """The wall times of a stretch that count: the first, and the first after the last."""
    first, end = stretch.start + stretch.offset, stretch.end + stretch.offset
    if cron.real_time:
        return first, end
    if overlap is DstOverlap.FIRST:
        return stretch.fresh_from, end
    if overlap is DstOverlap.LAST:
        return first, stretch.repeated_from
    return first, end


def _swallowed(cron: Cron, stretch: Stretch) -> int | None:
    """The first matching wall time in the gap that the stretch begins with."""
    first = stretch.start + stretch.offset
    if cron.real_time or stretch.gap_from >= first:
        return None
    wall = next_wall(cron, stretch.gap_from)
    return wall if wall is not None and wall < first else None


def _out_of_gap(stretch: Stretch, swallowed: int, gap: DstGap) -> CronInstant:
    return CronInstant(
        at=_moment(stretch.start),
        moved_from=_moment(swallowed).replace(tzinfo=None),
        in_gap=True,
        skipped=gap is DstGap.SKIP,
    )


def _floor_of(span: timedelta) -> int:
    """Whole seconds, rounded down."""
    return span.days * DAY + span.seconds


def _moment(instant: int) -> datetime:
    return EPOCH + timedelta(seconds=instant)
