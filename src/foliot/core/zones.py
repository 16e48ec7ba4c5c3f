"""Time zones: found by name in the IANA list, seen as stretches of time with one UTC offset each.

A name is looked up in the list, never used as a path. `zoneinfo` does not tell when a zone's offset
changes, so the changes are found by sampling and bisection, a window of about a year at a time, and
remembered. Instants and wall times are whole seconds since 1970; `wall = instant + offset`.
"""

import zoneinfo
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from foliot.core.errors import InvalidTimezone

DAY: Final = 86_400
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST: Final = (datetime.min.replace(tzinfo=UTC) - EPOCH) // timedelta(seconds=1)
LATEST: Final = (datetime.max.replace(tzinfo=UTC) - EPOCH) // timedelta(seconds=1)

# No zone has ever changed its offset twice within 6 days (the closest pairs, Gaza's among them, are
# 6.96 days apart), so samples 4 days apart see every change.
_SAMPLE: Final = 4 * DAY
_WINDOW: Final = 96 * _SAMPLE
# Offsets stay under 24 hours, so a change bears on wall times at most two days away.
_MARGIN: Final = _SAMPLE

# Files that lie among the zones and mean another thing on every machine, or nothing.
_NOT_ZONES: Final = frozenset({"localtime", "posixrules", "Factory"})
_LONGEST_NAME: Final = 64


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """Every name a job may use."""
    return frozenset(zoneinfo.available_timezones()) - _NOT_ZONES


@lru_cache(maxsize=1024)
def zone(name: str) -> ZoneInfo:
    """The zone of that exact name; InvalidTimezone, with the nearest name as a hint, if none."""
    if name not in zone_names():
        shown = name if len(name) <= _LONGEST_NAME else name[:_LONGEST_NAME] + "…"
        raise InvalidTimezone(
            reason=f"there is no time zone {shown!r}", hint=_hint(name), timezone=name
        )
    return ZoneInfo(name)


def _hint(name: str) -> str:
    wanted = name[:_LONGEST_NAME].strip().replace(" ", "_").casefold()
    by_word: dict[str, str] = {}
    for known in sorted(zone_names()):
        by_word.setdefault(known.rpartition("/")[2].casefold(), known)
    by_word.update({known.casefold(): known for known in zone_names()})
    close = get_close_matches(wanted, by_word, n=1, cutoff=0.7)
    if close:
        return f"did you mean {by_word[close[0]]!r}?"
    return "use an IANA name such as 'Europe/Berlin' or 'UTC'"


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of real time with one offset, cut to the window it was found in."""

    start: int  # its first instant
    end: int  # the first instant after it
    offset: int
    gap_from: int  # wall times from here to start + offset were left out when it began
    fresh_from: int  # its wall times before this one were in the stretch before: a second pass
    repeated_from: int  # its wall times from this one on come again in the next: a first pass


def stretch_at(zone: ZoneInfo, instant: int) -> Stretch:
    """The stretch that holds `instant`, which lies between EARLIEST and LATEST."""
    stretches = _stretches(zone, instant // _WINDOW)
    for stretch in stretches:
        if instant < stretch.end:
            return stretch
    return stretches[-1]


@lru_cache(maxsize=4096)
def _stretches(zone: ZoneInfo, window: int) -> tuple[Stretch, ...]:
    start, end = window * _WINDOW, (window + 1) * _WINDOW
    fixed = zone.utcoffset(None)
    if fixed is not None:
        begin, stop, offset = EARLIEST, LATEST + 1, _whole_seconds(fixed)
        return (Stretch(begin, stop, offset, begin + offset, begin + offset, stop + offset),)
    changes = _changes(zone, start - _MARGIN, end + _MARGIN)
    found = []
    for index, (begin, offset) in enumerate(changes):
        before = changes[index - 1][1] if index else offset
        stop, after = changes[index + 1] if index + 1 < len(changes) else (end + _MARGIN, offset)
        if stop <= start or begin >= end:
            continue
        cut_begin, cut_stop = max(begin, start, EARLIEST), min(stop, end, LATEST + 1)
        found.append(
            Stretch(
                start=cut_begin,
                end=cut_stop,
                offset=offset,
                gap_from=begin + min(before, offset) if begin >= start else start + offset,
                fresh_from=max(cut_begin + offset, begin + before),
                repeated_from=min(cut_stop + offset, stop + after),
            )
        )
    return tuple(found)


def _changes(zone: ZoneInfo, start: int, end: int) -> list[tuple[int, int]]:
    """(instant, offset from then on), in order; the first is `start` itself."""
    changes = [(start, _offset_at(zone, start))]
    for sample in range(start + _SAMPLE, end + 1, _SAMPLE):
        offset = _offset_at(zone, sample)
        if offset != changes[-1][1]:
            changes.append((_change_between(zone, sample - _SAMPLE, sample), offset))
    return changes


def _change_between(zone: ZoneInfo, low: int, high: int) -> int:
    """The first instant with the offset of `high`; `low` has another."""
    offset = _offset_at(zone, high)
    while high - low > 1:
        middle = (low + high) // 2
        if _offset_at(zone, middle) == offset:
            high = middle
        else:
            low = middle
    return high


def _offset_at(zone: ZoneInfo, instant: int) -> int:
    """A day is kept free at both ends of time, so that the local time is still a datetime."""
    held = min(max(instant, EARLIEST + DAY), LATEST - DAY)
    local = (EPOCH + timedelta(seconds=held)).astimezone(zone)
    return _whole_seconds(local.utcoffset() or timedelta())


def _whole_seconds(offset: timedelta) -> int:
    return offset.days * DAY + offset.seconds
