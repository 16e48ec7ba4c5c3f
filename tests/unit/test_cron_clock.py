"""From wall times to instants: gaps, overlaps and real time, on nights that really happened."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from foliot.core.cron.clock import CronInstant, count_instants, next_instant, previous_instant
from foliot.core.cron.expression import Cron, parse
from foliot.core.model import DstGap, DstOverlap
from foliot.core.zones import zone

RUN, SKIP = DstGap.RUN_AFTER_GAP, DstGap.SKIP
FIRST, LAST, BOTH = DstOverlap.FIRST, DstOverlap.LAST, DstOverlap.BOTH


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def fires(
    expression: str,
    zone_name: str,
    start: str,
    end: str,
    gap: DstGap = RUN,
    overlap: DstOverlap = FIRST,
) -> list[str]:
    """Every instant in start < t <= end, found forwards; backwards and by count it is the same."""
    cron, where = parse(expression), zone(zone_name)
    after, until = utc(start), utc(end)
    forwards: list[CronInstant] = []
    found = next_instant(cron, where, after, gap, overlap)
    while found is not None and found.at <= until:
        forwards.append(found)
        found = next_instant(cron, where, found.at, gap, overlap)
    backwards: list[CronInstant] = []
    found = previous_instant(cron, where, until + timedelta(microseconds=1), gap, overlap)
    while found is not None and found.at > after:
        backwards.append(found)
        found = previous_instant(cron, where, found.at, gap, overlap)
    assert backwards[::-1] == forwards
    assert count_instants(cron, where, after, until, gap, overlap) == len(forwards)
    return [_shown(instant) for instant in forwards]


def _shown(instant: CronInstant) -> str:
    text = instant.at.strftime("%d %H:%M" if instant.at.second == 0 else "%d %H:%M:%S")
    if instant.moved_from is not None:
        assert instant.in_gap
        text += instant.moved_from.strftime(" from %H:%M")
    return text + (" skipped" if instant.skipped else "")


# New York, 8 March 2026: 02:00 EST (07:00 UTC) becomes 03:00 EDT.
SPRING = ("2026-03-07 12:00", "2026-03-09 12:00")
# New York, 1 November 2026: 02:00 EDT (06:00 UTC) becomes 01:00 EST.
AUTUMN = ("2026-10-31 12:00", "2026-11-02 12:00")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("30 2 * * *", ["08 07:00 from 02:30", "09 06:30"]),
        ("0,15,30 2 * * *", ["08 07:00 from 02:00", "09 06:00", "09 06:15", "09 06:30"]),
        ("0 2,3 * * *", ["08 07:00", "09 06:00", "09 07:00"]),
        ("30 2,3 * * *", ["08 07:00 from 02:30", "08 07:30", "09 06:30", "09 07:30"]),
        ("30 1 * * *", ["08 06:30", "09 05:30"]),
        ("59 59 1 * * *", ["08 06:59:59", "09 05:59:59"]),
        ("0 3 * * *", ["08 07:00", "09 07:00"]),
        ("30 2 8 3 *", ["08 07:00 from 02:30"]),
        ("*/30 2 * * *", ["08 07:00 from 02:00", "09 06:00", "09 06:30"]),
    ],
)
def test_times_in_a_gap_run_once_right_after_it(expression: str, expected: list[str]) -> None:
    assert fires(expression, "America/New_York", *SPRING) == expected


def test_under_skip_the_gap_leaves_one_instant_to_record() -> None:
    shown = fires("0,30 2 * * *", "America/New_York", *SPRING, gap=SKIP)
    assert shown == ["08 07:00 from 02:00 skipped", "09 06:00", "09 06:30"]


def test_under_skip_a_real_match_right_after_the_gap_still_runs() -> None:
    found = next_instant(
        parse("0 2,3 * * *"), zone("America/New_York"), utc("2026-03-08 06:59"), SKIP, FIRST
    )
    assert found == CronInstant(utc("2026-03-08 07:00"))


@pytest.mark.parametrize(
    ("overlap", "expected"),
    [
        (FIRST, ["01 05:30", "02 06:30"]),
        (LAST, ["01 06:30", "02 06:30"]),
        (BOTH, ["01 05:30", "01 06:30", "02 06:30"]),
    ],
)
def test_a_time_that_comes_twice_runs_by_policy(overlap: DstOverlap, expected: list[str]) -> None:
    assert fires("30 1 * * *", "America/New_York", *AUTUMN, overlap=overlap) == expected


@pytest.mark.parametrize(
    ("overlap", "expected"),
    [
        (FIRST, ["01 04:00", "01 05:00", "01 07:00"]),
        (LAST, ["01 04:00", "01 06:00", "01 07:00"]),
        (BOTH, ["01 04:00", "01 05:00", "01 06:00", "01 07:00"]),
    ],
)
def test_the_hours_around_an_overlap_are_not_touched(
    overlap: DstOverlap, expected: list[str]
) -> None:
    shown = fires("0 0-2 * * *", "America/New_York", AUTUMN[0], "2026-11-01 12:00", overlap=overlap)
    assert shown == expected


@pytest.mark.parametrize("overlap", list(DstOverlap))
@pytest.mark.parametrize("gap", list(DstGap))
def test_an_open_hour_runs_in_real_time_whatever_the_policies(
    gap: DstGap, overlap: DstOverlap
) -> None:
    spring = fires(
        "30 * * * *", "America/New_York", "2026-03-08 05:00", "2026-03-08 09:00", gap, overlap
    )
    assert spring == ["08 05:30", "08 06:30", "08 07:30", "08 08:30"]
    autumn = fires(
        "30 * * * *", "America/New_York", "2026-11-01 04:00", "2026-11-01 08:00", gap, overlap
    )
    assert autumn == ["01 04:30", "01 05:30", "01 06:30", "01 07:30"]
    even = fires(
        "0 */2 * * *", "America/New_York", "2026-03-08 04:00", "2026-03-08 10:30", gap, overlap
    )
    assert even == ["08 05:00", "08 08:00", "08 10:00"]  # 00:00, 04:00 and 06:00


@pytest.mark.parametrize(
    ("expression", "zone_name", "start", "end", "expected"),
    [
        # Lord Howe moves by half an hour: 02:00 becomes 02:30 on 4 October 2026.
        (
            "0,15,45 2 * * *",
            "Australia/Lord_Howe",
            "2026-10-03 12:00",
            "2026-10-04 12:00",
            ["03 15:30 from 02:00", "03 15:45"],
        ),
        # Troll moves by two hours: 01:00 becomes 03:00 on 29 March 2026.
        (
            "30 1,2 * * *",
            "Antarctica/Troll",
            "2026-03-28 12:00",
            "2026-03-29 12:00",
            ["29 01:00 from 01:30"],
        ),
        # Samoa left 30 December 2011 out altogether.
        (
            "0 9 * * *",
            "Pacific/Apia",
            "2011-12-29 00:00",
            "2012-01-01 00:00",
            ["29 19:00", "30 10:00 from 09:00", "30 19:00", "31 19:00"],
        ),
        # Kwajalein left 21 August 1993 out.
        (
            "0 12 21 * *",
            "Pacific/Kwajalein",
            "1993-08-01 00:00",
            "1993-09-01 00:00",
            ["21 12:00 from 12:00"],
        ),
        # Liberia moved by 44 minutes and a half: 00:00 became 00:44:30 on 7 January 1972.
        (
            "10 0 * * *",
            "Africa/Monrovia",
            "1972-01-06 00:00",
            "1972-01-09 00:00",
            ["06 00:54:30", "07 00:44:30 from 00:10", "08 00:10"],
        ),
        # Dublin's winter time is the one with a negative saving; its spring gap is like London's.
        (
            "30 1 * * *",
            "Europe/Dublin",
            "2026-03-28 12:00",
            "2026-03-30 12:00",
            ["29 01:00 from 01:30", "30 00:30"],
        ),
        # Morocco leaves its summer time for Ramadan: 03:00 becomes 02:00 on 15 February 2026.
        (
            "30 2 * * *",
            "Africa/Casablanca",
            "2026-02-14 12:00",
            "2026-02-16 12:00",
            ["15 01:30", "16 02:30"],
        ),
    ],
)
def test_nights_unlike_new_yorks(
    expression: str, zone_name: str, start: str, end: str, expected: list[str]
) -> None:
    assert fires(expression, zone_name, start, end) == expected


def test_a_day_that_comes_twice_is_lived_once() -> None:
    """Kwajalein went from 11 hours ahead to 12 behind on 1 October 1969: 23 hours came again."""
    shown = fires("0 12 * * *", "Pacific/Kwajalein", "1969-09-29 00:00", "1969-10-02 12:00")
    assert shown == ["29 01:00", "30 01:00", "02 00:00"]
    both = fires(
        "0 12 * * *", "Pacific/Kwajalein", "1969-09-29 00:00", "1969-10-02 12:00", overlap=BOTH
    )
    assert both == ["29 01:00", "30 01:00", "01 00:00", "02 00:00"]


def test_next_and_previous_are_strict_and_see_fractions() -> None:
    cron, where = parse("*/5 * * * *"), zone("UTC")
    five_past = utc("2026-05-01 09:05")
    tick = timedelta(microseconds=1)
    assert _next(cron, where, five_past) == utc("2026-05-01 09:10")
    assert _next(cron, where, five_past - tick) == five_past
    assert _next(cron, where, five_past + tick) == utc("2026-05-01 09:10")
    assert _previous(cron, where, five_past) == utc("2026-05-01 09:00")
    assert _previous(cron, where, five_past + tick) == five_past
    assert _previous(cron, where, five_past - tick) == utc("2026-05-01 09:00")


def test_a_count_leaves_its_start_out_and_takes_its_end_in() -> None:
    cron, where = parse("*/5 * * * *"), zone("America/New_York")
    nine, ten = utc("2026-05-01 09:00"), utc("2026-05-01 10:00")
    tick = timedelta(microseconds=1)
    assert count_instants(cron, where, nine, ten, RUN, FIRST) == 12
    assert count_instants(cron, where, nine - tick, ten, RUN, FIRST) == 13
    assert count_instants(cron, where, nine, ten - tick, RUN, FIRST) == 11
    assert count_instants(cron, where, ten, nine, RUN, FIRST) == 0


@pytest.mark.parametrize("zone_name", ["UTC", "America/New_York", "Pacific/Auckland", "Etc/GMT+12"])
@pytest.mark.parametrize("expression", ["* * * * * *", "0 0 * * *", "0 0 29 2 *", "30 2 1 1 *"])
def test_both_ends_of_time_give_an_answer(expression: str, zone_name: str) -> None:
    cron, where = parse(expression), zone(zone_name)
    start, end = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    assert previous_instant(cron, where, start, RUN, FIRST) is None
    assert next_instant(cron, where, end, RUN, FIRST) is None
    first = next_instant(cron, where, start, RUN, FIRST)
    last = previous_instant(cron, where, end, RUN, FIRST)
    assert first is not None
    assert first.at.year <= 4
    assert last is not None
    assert last.at.year >= 9996
    assert next_instant(cron, where, last.at, RUN, FIRST) is None
    assert count_instants(cron, where, last.at, end, RUN, FIRST) == 0


def test_any_aware_time_will_do_and_the_answer_is_utc() -> None:
    afternoon = datetime(2026, 5, 1, 15, 0, tzinfo=timezone(timedelta(hours=2)))
    found = _next(parse("30 9 * * *"), zone("America/New_York"), afternoon)
    assert found == utc("2026-05-01 13:30")
    assert found.tzinfo is UTC


def test_a_year_of_seconds_is_counted_not_listed() -> None:
    cron = parse("* * * * * *")
    start, end = utc("2026-01-01"), utc("2027-01-01")
    for zone_name in ("UTC", "America/New_York"):
        counted = count_instants(cron, zone(zone_name), start, end, RUN, FIRST)
        assert counted == 365 * 86_400


def _next(cron: Cron, where: ZoneInfo, after: datetime) -> datetime:
    found = next_instant(cron, where, after, RUN, FIRST)
    assert found is not None
    return found.at


def _previous(cron: Cron, where: ZoneInfo, before: datetime) -> datetime:
    found = previous_instant(cron, where, before, RUN, FIRST)
    assert found is not None
    return found.at
