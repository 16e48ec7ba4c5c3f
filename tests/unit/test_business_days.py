"""Moves across changes of clocks and between zones: what is rare, example by example."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice, takewhile
from uuid import UUID

import pytest

from foliot.core.ids import JobId
from foliot.core.model import CalendarRule, DstGap, Schedule, ScheduleType, SkipReason
from foliot.core.schedule.calendar import DAY, Calendar
from foliot.core.schedule.misfire import settle
from foliot.core.schedule.occurrences import ScheduleFacts, fires, timeline
from foliot.core.schedule.timeline import TICK, Occurrence, Timeline

JOB = JobId(UUID(int=1))
NEW_YORK = "America/New_York"  # on Sunday 2027-03-14 02:00 became 03:00, which is 07:00 UTC
NEXT, PREVIOUS = CalendarRule.NEXT_BUSINESS_DAY, CalendarRule.PREVIOUS_BUSINESS_DAY
MON, TUE, WED, THU, FRI, SAT, SUN = range(1, 8)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


CREATED = utc("2027-03-10T00:00")


def cron(expression: str, timezone: str, gap: DstGap = DstGap.RUN_AFTER_GAP) -> Schedule:
    return Schedule(
        ScheduleType.CRON,
        cron_expression=expression,
        timezone=timezone,
        dst_gap=gap,
        calendar="biz",
    )


def interval(hours: float, start: str, timezone: str = NEW_YORK) -> Schedule:
    return Schedule(
        ScheduleType.INTERVAL,
        interval_seconds=hours * 3600,
        start_at=utc(start),
        timezone=timezone,
        dst_gap=DstGap.SKIP,
        calendar="biz",
    )


def facts(rule: CalendarRule, *weekdays: int, timezone: str | None = None) -> ScheduleFacts:
    calendar = Calendar("biz", rule, timezone, excluded_weekdays=frozenset(weekdays))
    return ScheduleFacts(JOB, CREATED, calendar)


def listed(line: Timeline, end: str) -> list[tuple[str, SkipReason | None]]:
    found, at = [], utc("2027-03-01T00:00")
    while (one := line.next(at)) is not None and one.instant < utc(end):
        at = one.instant
        found.append((f"{at:%dT%H:%M:%S}", one.skip_reason))
    return found


def walk(line: Timeline, at: datetime) -> Iterator[Occurrence]:
    while (found := line.next(at)) is not None:
        yield found
        at = found.instant


def held(line: Timeline, end: str) -> list[tuple[str, SkipReason]]:
    runs = line.held(utc("2027-03-10T00:00"), utc(end))
    return [(f"{run.from_:%dT%H:%M:%S}", run.reason) for run in runs]


def test_a_time_in_a_gap_on_an_excluded_day_moves_as_it_was_meant() -> None:
    line = timeline(cron("30 2 * * SUN", NEW_YORK), facts(NEXT, SUN))
    assert listed(line, "2027-03-20T00:00") == [("15T06:30:00", None)]


@pytest.mark.parametrize(
    ("gap", "reason"), [(DstGap.RUN_AFTER_GAP, None), (DstGap.SKIP, SkipReason.DST_GAP)]
)
def test_a_move_into_a_gap_follows_the_gap_policy(gap: DstGap, reason: SkipReason | None) -> None:
    line = timeline(cron("30 2 * * SAT", NEW_YORK, gap), facts(NEXT, SAT))
    assert listed(line, "2027-03-20T00:00") == [("14T07:00:00", reason)]
    assert held(line, "2027-03-20T00:00") == ([("14T07:00:00", reason)] if reason else [])


def test_both_reasons_to_move_are_in_the_note() -> None:
    found = timeline(cron("30 2 * * SAT", NEW_YORK), facts(NEXT, SAT)).next(CREATED)
    assert found == Occurrence(
        utc("2027-03-14T07:00"),
        "moved from 2027-03-13 to the next business day by calendar biz;"
        " 02:30 does not exist on 2027-03-14 in New York: moved to 03:00",
    )


def test_an_interval_moves_into_a_gap_too() -> None:
    line = timeline(interval(24 * 14, "2027-03-13T07:30"), facts(NEXT, SAT))
    assert listed(line, "2027-03-20T00:00") == [("14T07:00:00", SkipReason.DST_GAP)]
    assert held(line, "2027-03-20T00:00") == [("14T07:00:00", SkipReason.DST_GAP)]


def test_of_two_that_coincide_the_one_that_runs_stands() -> None:
    # Monday 03:00 and Wednesday 02:30 move to the Sunday that has no 02:30.
    schedule = interval(47.5, "2027-03-11T08:00")
    line = timeline(schedule, facts(PREVIOUS, MON, TUE, WED))
    assert listed(line, "2027-03-15T00:00") == [
        ("11T08:00:00", None),
        ("13T07:30:00", None),
        ("14T07:00:00", None),
    ]


def test_an_excluded_day_outranks_a_gap_on_it() -> None:
    line = timeline(cron("30 2 * * *", NEW_YORK, DstGap.SKIP), facts(CalendarRule.SKIP, SUN))
    assert held(line, "2027-03-20T00:00") == [("14T07:00:00", SkipReason.CALENDAR)]


def test_a_gap_on_a_day_that_moved_away_holds_nothing() -> None:
    line = timeline(cron("30 2 * * *", NEW_YORK, DstGap.SKIP), facts(NEXT, SUN))
    assert held(line, "2027-03-20T00:00") == []


def test_a_gap_on_a_business_day_that_others_move_to_is_held_once() -> None:
    line = timeline(cron("30 2 * * *", NEW_YORK, DstGap.SKIP), facts(NEXT, SAT))
    assert held(line, "2027-03-20T00:00") == [("14T07:00:00", SkipReason.DST_GAP)]


@pytest.mark.parametrize(
    "schedule",
    [
        cron("30 23 * * FRI", "America/Scoresbysund"),
        interval(24 * 14, "2027-03-27T01:30", "America/Scoresbysund"),
    ],
    ids=["cron", "interval"],
)
def test_a_gap_that_ends_the_day_does_not_lead_out_of_it(schedule: Schedule) -> None:
    # On Saturday 2027-03-27 23:00 became midnight, at 01:00 UTC.
    line = timeline(schedule, facts(NEXT, FRI))
    found = line.next(utc("2027-03-26T00:00"))
    assert found is not None
    assert found.instant == utc("2027-03-28T00:59:59")


def test_a_calendar_of_another_zone_keeps_its_own_local_time() -> None:
    line = timeline(cron("0 15 * * SAT", "UTC"), facts(NEXT, SAT, timezone=NEW_YORK))
    # 10:00 in New York on both days, of which the second has an hour less.
    assert listed(line, "2027-03-16T00:00") == [("14T14:00:00", None)]


def test_a_calendar_of_another_zone_moves_only_what_its_day_has() -> None:
    schedule, start = cron("0 1,23 * * SAT", "UTC"), utc("2027-03-19T00:00")
    known = facts(NEXT, SAT, SUN, timezone=NEW_YORK)
    # 01:00 on Saturday is Friday evening in New York: it stays. 23:00 is Saturday: it moves.
    found = [f"{one.instant:%dT%H:%M}" for one in islice(fires(schedule, known, start), 3)]
    assert found == ["20T01:00", "22T23:00", "27T01:00"]
    assert timeline(schedule, known).count(start, utc("2027-03-27T01:00")) == 3


def test_a_part_of_a_day_in_another_zone_moves_beside_what_is_there() -> None:
    # Friday 02:00 is Thursday 21:00 in New York and moves to Friday 21:00 there.
    line = timeline(cron("0 2,22 * * FRI", "UTC"), facts(NEXT, THU, timezone=NEW_YORK))
    after, until = utc("2027-03-18T00:00"), utc("2027-03-25T00:00")
    found = [one.instant for one in takewhile(lambda one: one.instant < until, walk(line, after))]
    # New York is four hours behind: 22:00 is 18:00 and stays, 02:00 was 22:00.
    assert found == [utc("2027-03-19T22:00"), utc("2027-03-20T02:00")]
    assert line.count(after, until) == 2
    moved = line.next(utc("2027-03-19T22:00"))
    assert moved is not None
    assert moved.note == "moved from 2027-03-18 to the next business day by calendar biz"


def test_a_day_on_which_the_jobs_clocks_change_does_not_stand_for_others() -> None:
    # On Sunday 2027-11-07 in Havana 01:00 became 00:00: 00:30 fired the first time, at 04:30 UTC.
    line = timeline(
        cron("30 0,12 * * *", "America/Havana"), facts(PREVIOUS, SUN, MON, timezone="UTC")
    )
    after, until = utc("2027-11-06T00:00"), utc("2027-11-09T00:00")
    found = [one.instant for one in takewhile(lambda one: one.instant < until, walk(line, after))]
    assert [f"{at:%dT%H:%M}" for at in found] == ["06T04:30", "06T05:30", "06T16:30", "06T17:30"]
    assert line.count(after, until) == 4


@pytest.mark.parametrize("expression", ["* * * * *", "* * * * SAT-MON"])
@pytest.mark.parametrize("rule", [NEXT, PREVIOUS])
def test_a_year_of_minutes_under_a_calendar_of_another_zone_is_settled_quickly(
    expression: str, rule: CalendarRule
) -> None:
    known = facts(rule, SAT, SUN, timezone=NEW_YORK)
    before = time.process_time()
    schedule, now = cron(expression, "Europe/Berlin"), utc("2028-03-10T00:00")
    settled = settle(schedule, known, after=CREATED, now=now)
    assert time.process_time() - before < 2
    assert len(settled.fires) == 1
    assert sum(skip.count for skip in settled.skips) > 50_000


def test_the_longest_run_of_excluded_days_in_another_zone_is_counted_quickly() -> None:
    days = frozenset(utc("2027-04-01T00:00").date() + n * DAY for n in range(366))
    calendar = Calendar("biz", NEXT, NEW_YORK, excluded_dates=days)
    line = timeline(cron("* * * * *", "UTC"), ScheduleFacts(JOB, CREATED, calendar))
    before = time.process_time()
    # All of it meets on the one business day after.
    assert line.count(utc("2027-04-01T04:00") - TICK, utc("2028-04-02T03:59")) == 1440
    assert time.process_time() - before < 2


def test_a_weekend_of_excluded_minutes_is_passed_over_in_one_step() -> None:
    line = timeline(cron("* * * * *", "UTC"), facts(CalendarRule.SKIP, SAT, SUN))
    after = line.next_fire(utc("2027-03-12T23:59"))
    before = line.previous_fire(utc("2027-03-15T00:00"))
    assert after is not None
    assert before is not None
    assert after.instant == utc("2027-03-15T00:00")
    assert before.instant == utc("2027-03-12T23:59")
