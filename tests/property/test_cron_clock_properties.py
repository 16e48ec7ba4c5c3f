"""Cron through every change of every zone, against an oracle that reads the clock minute by minute.

The oracle shares nothing with the code it checks: it asks `astimezone` what the clock on the wall
shows at each minute, and tests that against its own naive reading of the expression.
"""

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.core.cron.clock import CronInstant, count_instants, next_instant, previous_instant
from foliot.core.cron.expression import parse
from foliot.core.model import DstGap, DstOverlap
from foliot.core.zones import stretch_at, zone, zone_names

MINUTE = timedelta(minutes=1)
FIRST_INSTANT = datetime(1970, 1, 1, tzinfo=UTC)
LAST_INSTANT = datetime(2038, 1, 1, tzinfo=UTC)
ZONES = sorted(zone_names())


@cache
def changes(zone_name: str) -> list[datetime]:
    """Every instant from 1970 to 2037 at which the zone's offset changes, to the second."""
    where = ZoneInfo(zone_name)
    found: list[datetime] = []
    low, step = FIRST_INSTANT, timedelta(days=3)
    offset = low.astimezone(where).utcoffset()
    while low < LAST_INSTANT:
        high = low + step
        next_offset = high.astimezone(where).utcoffset()
        if next_offset != offset:
            left, right = low, high
            while right - left > timedelta(seconds=1):
                middle = left + timedelta(seconds=(right - left) // timedelta(seconds=2))
                if middle.astimezone(where).utcoffset() == offset:
                    left = middle
                else:
                    right = middle
            found.append(right)
        low, offset = high, next_offset
    return found


@cache
def distinct_zones() -> list[str]:
    """One name for each history of offsets: many names are other names of the same zone."""
    known: dict[tuple[object, ...], str] = {}
    for zone_name in ZONES:
        where = ZoneInfo(zone_name)
        moments = changes(zone_name)
        offsets = [at.astimezone(where).utcoffset() for at in (FIRST_INSTANT, *moments)]
        known.setdefault((*moments, *offsets), zone_name)
    return list(known.values())


AROUND_A_CHANGE = [
    "30 2 * * *",
    "*/5 * * * *",
    "0 0 * * *",
    "15,45 0-4 * * *",
    "0 */2 * * *",
    "59 59 23 * * *",
    "*/20 1,2,3 * * *",
    "7 3 * * 0",
    "30 1 L * *",
    "0 0 30 12 *",
    "* * 0-3 * * *",
]


def test_next_rises_in_every_zone_across_every_change() -> None:
    """Three of the expressions at each change, in turn, from up to 90 minutes before it."""
    overlaps = list(DstOverlap)
    crossed = 0
    for turn, zone_name in enumerate(distinct_zones()):
        where = zone(zone_name)
        for number, change in enumerate(changes(zone_name)):
            crossed += 1
            edge = int(change.timestamp())
            assert (stretch_at(where, edge - 1).end, stretch_at(where, edge).start) == (edge, edge)
            for at in range(turn + number * 3, turn + number * 3 + 3):
                cron = parse(AROUND_A_CHANGE[at % len(AROUND_A_CHANGE)])
                position = change - timedelta(seconds=2 + at % 5400)
                for _ in range(4):
                    found = next_instant(
                        cron, where, position, DstGap.RUN_AFTER_GAP, overlaps[at % 3]
                    )
                    assert found is not None
                    assert found.at > position, (zone_name, cron.expression, position)
                    position = found.at
    assert crossed > 10_000


class Wall:
    """What the clock on the wall shows, minute by minute, for some days around a change."""

    def __init__(self, zone_name: str, change: datetime) -> None:
        where = ZoneInfo(zone_name)
        self.start = change.replace(second=0) - timedelta(days=3)
        self.end = self.start + timedelta(days=6)
        self.minutes: list[tuple[datetime, datetime]] = []
        self.passes: dict[datetime, list[datetime]] = defaultdict(list)
        moment = self.start
        while moment < self.end:
            local = moment.astimezone(where).replace(tzinfo=None)
            self.minutes.append((moment, local))
            self.passes[local].append(moment)
            moment += MINUTE

    def missing(self) -> list[tuple[datetime, datetime]]:
        """(wall time that never was, first instant after it)."""
        found: list[tuple[datetime, datetime]] = []
        for (_, earlier), (moment, later) in pairwise(self.minutes):
            skipped = earlier + MINUTE
            while skipped < later:
                found.append((skipped, moment))
                skipped += MINUTE
        return found


wall_around = cache(Wall)


def naive_set(field: str, low: int, high: int) -> set[int]:
    values: set[int] = set()
    for item in field.split(","):
        span, _, step = item.partition("/")
        first, _, last = span.partition("-")
        if span == "*":
            numbers = range(low, high + 1)
        else:
            numbers = range(int(first), int(last or (high if step else first)) + 1)
        values |= set(numbers[:: int(step or 1)])
    return values


class Naive:
    """Five fields of numbers, ranges and steps; the days are open."""

    def __init__(self, expression: str) -> None:
        minute, hour, *_ = expression.split()
        self.minutes, self.hours = naive_set(minute, 0, 59), naive_set(hour, 0, 23)
        self.real_time = hour[0] == "*"

    def matches(self, wall: datetime) -> bool:
        return wall.minute in self.minutes and wall.hour in self.hours


def expected(naive: Naive, wall: Wall, overlap: DstOverlap) -> dict[datetime, datetime | None]:
    """Instant -> the first wall time the gap swallowed, or None for a real match."""
    found: dict[datetime, datetime | None] = {}
    for moment, local in wall.minutes:
        if not naive.matches(local):
            continue
        passes = wall.passes[local]
        if overlap is DstOverlap.FIRST and not naive.real_time and moment != passes[0]:
            continue
        if overlap is DstOverlap.LAST and not naive.real_time and moment != passes[-1]:
            continue
        found[moment] = None
    if not naive.real_time:
        for local, moment in wall.missing():
            if naive.matches(local):
                found.setdefault(moment, local)
    return found


# Every kind of night: an hour, half an hour, two hours, a whole day; at midnight and at other
# hours; a zone that falls back for Ramadan, one with a negative saving, some that changed their
# standard time.
NIGHTS = [
    ("America/New_York", 2026),
    ("America/St_Johns", 2006),
    ("Europe/Dublin", 2026),
    ("Europe/Istanbul", 2016),
    ("Africa/Casablanca", 2026),
    ("Africa/Cairo", 2014),
    ("Antarctica/Troll", 2026),
    ("Australia/Lord_Howe", 2026),
    ("Pacific/Apia", 2011),
    ("Pacific/Kwajalein", 1993),
    ("Asia/Gaza", 2026),
    ("Asia/Pyongyang", 2015),
    ("America/Sao_Paulo", 2017),
    ("America/Caracas", 2007),
    ("Asia/Kathmandu", 1985),
    ("Asia/Tehran", 2020),
    ("Africa/Tunis", 2005),
]
CHANGES = [
    (zone_name, change)
    for zone_name, year in NIGHTS
    for change in changes(zone_name)
    if change.year == year
]
EXPRESSIONS = [
    "30 2 * * *",
    "0 0 * * *",
    "0 3 * * *",
    "*/10 * * * *",
    "17 * * * *",
    "0 */3 * * *",
    "*/15 0-3 * * *",
    "0,30 1,2 * * *",
    "59 0-23 * * *",
    "5/20 23,0,1 * * *",
    "45 12 * * *",
]


def agree(expression: str, zone_name: str, change: datetime, overlap: DstOverlap) -> None:
    """Forwards, backwards and by count, for two days on either side of the change."""
    wall = wall_around(zone_name, change)
    start, end = change - timedelta(days=2), change + timedelta(days=2)
    answers = expected(Naive(expression), wall, overlap)
    wanted = {at: moved for at, moved in sorted(answers.items()) if start < at <= end}
    cron, where = parse(expression), zone(zone_name)
    for gap in DstGap:
        forwards: list[CronInstant] = []
        found = next_instant(cron, where, start, gap, overlap)
        while found is not None and found.at <= end:
            forwards.append(found)
            found = next_instant(cron, where, found.at, gap, overlap)
        assert {instant.at: instant.moved_from for instant in forwards} == wanted
        for instant in forwards:
            assert instant.in_gap == (instant.moved_from is not None)
            assert instant.skipped == (instant.in_gap and gap is DstGap.SKIP)
        backwards: list[CronInstant] = []
        found = previous_instant(cron, where, end + timedelta(microseconds=1), gap, overlap)
        while found is not None and found.at > start:
            backwards.append(found)
            found = previous_instant(cron, where, found.at, gap, overlap)
        assert backwards[::-1] == forwards
        assert count_instants(cron, where, start, end, gap, overlap) == len(wanted)


@pytest.mark.parametrize(("zone_name", "change"), CHANGES)
def test_the_clock_on_the_wall_agrees(zone_name: str, change: datetime) -> None:
    for expression in EXPRESSIONS:
        for overlap in DstOverlap:
            agree(expression, zone_name, change, overlap)


def test_the_nights_are_of_every_kind() -> None:
    sizes = {
        stretch_at(zone(name), int(change.timestamp())).offset
        - stretch_at(zone(name), int(change.timestamp()) - 1).offset
        for name, change in CHANGES
    }
    assert {3600, -3600, 1800, -1800, 7200, -7200, 900, 86_400} <= sizes


minute_fields = st.lists(st.integers(0, 59), min_size=1, max_size=4, unique=True)
hour_fields = st.lists(st.integers(0, 23), min_size=1, max_size=6, unique=True)


@settings(deadline=None, max_examples=150)
@given(minute_fields, hour_fields, st.sampled_from(CHANGES), st.sampled_from(list(DstOverlap)))
def test_the_clock_on_the_wall_agrees_on_any_times(
    minutes: list[int], hours: list[int], night: tuple[str, datetime], overlap: DstOverlap
) -> None:
    expression = f"{','.join(map(str, minutes))} {','.join(map(str, hours))} * * *"
    agree(expression, *night, overlap)


@settings(deadline=None, max_examples=150)
@given(
    st.sampled_from(["0 0 29 2 *", "30 2 * 3 0", "30 1 1-7 11 0", "0 12 L * *", "30 2 ? * SUNL"]),
    st.sampled_from(["America/New_York", "Asia/Gaza", "Pacific/Apia"]),
    st.datetimes(
        datetime(1960, 1, 1),  # noqa: DTZ001  hypothesis wants naive bounds
        datetime(2060, 1, 1),  # noqa: DTZ001
        timezones=st.just(UTC),
    ),
    st.sampled_from(list(DstOverlap)),
)
def test_a_long_jump_passes_over_no_instant(
    expression: str, zone_name: str, after: datetime, overlap: DstOverlap
) -> None:
    """Rare instants are found as well from afar as from close by."""
    cron, where = parse(expression), zone(zone_name)
    found = next_instant(cron, where, after, DstGap.RUN_AFTER_GAP, overlap)
    assert found is not None
    assert count_instants(cron, where, after, found.at, DstGap.RUN_AFTER_GAP, overlap) == 1
    close = found.at - timedelta(seconds=1)
    assert next_instant(cron, where, close, DstGap.RUN_AFTER_GAP, overlap) == found
    back = previous_instant(cron, where, found.at, DstGap.RUN_AFTER_GAP, overlap)
    assert back is not None
    assert back.at <= after
    assert count_instants(cron, where, back.at, after, DstGap.RUN_AFTER_GAP, overlap) == 0
