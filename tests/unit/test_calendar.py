"""Which days a calendar excludes, and which calendars are refused."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from foliot.core.errors import InvalidInput, InvalidTimezone
from foliot.core.schedule.calendar import Calendar, day_of, day_start, validate

BANK = Calendar(
    "bank",
    timezone="America/New_York",
    excluded_dates=frozenset({date(2027, 3, 26)}),
    excluded_weekdays=frozenset({6, 7}),
    excluded_yearly=frozenset({(12, 25), (2, 29)}),
)


@pytest.mark.parametrize(
    ("day", "excluded"),
    [
        (date(2027, 3, 26), True),
        (date(2028, 3, 24), False),
        (date(2027, 3, 27), True),
        (date(2027, 3, 28), True),
        (date(2027, 3, 29), False),
        (date(2030, 12, 25), True),
        (date(2028, 2, 29), True),
    ],
)
def test_a_day_is_excluded_by_date_by_weekday_or_every_year(day: date, excluded: bool) -> None:
    assert BANK.excludes(day) is excluded


def test_excluded_days_in_a_row_are_one_run() -> None:
    run = (date(2027, 3, 26), date(2027, 3, 28))
    assert all(BANK.run_around(date(2027, 3, day)) == run for day in (26, 27, 28))
    assert list(BANK.runs(date(2027, 3, 27), date(2027, 4, 3))) == [
        run,
        (date(2027, 4, 3), date(2027, 4, 4)),
    ]
    assert list(BANK.runs(date(2027, 3, 22), date(2027, 3, 25))) == []


def test_a_good_calendar_is_kept() -> None:
    validate(BANK)
    validate(Calendar("none"))


def days(first: date, count: int) -> frozenset[date]:
    return frozenset(first + timedelta(days=number) for number in range(count))


EVERY_DATE = frozenset((day.month, day.day) for day in days(date(2028, 1, 1), 366))


@pytest.mark.parametrize(
    ("calendar", "field"),
    [
        (replace(BANK, name=" "), "name"),
        (replace(BANK, name="x" * 201), "name"),
        (replace(BANK, excluded_weekdays=frozenset({0})), "excluded_weekdays"),
        (replace(BANK, excluded_weekdays=frozenset({8})), "excluded_weekdays"),
        (replace(BANK, excluded_weekdays=frozenset(range(1, 8))), "excluded_weekdays"),
        (replace(BANK, excluded_yearly=frozenset({(2, 30)})), "excluded_yearly"),
        (replace(BANK, excluded_yearly=frozenset({(13, 1)})), "excluded_yearly"),
        (replace(BANK, excluded_yearly=EVERY_DATE), "excluded_yearly"),
        (replace(BANK, excluded_yearly=EVERY_DATE - {(2, 29)}), "excluded_yearly"),
        (replace(BANK, excluded_dates=days(date(1990, 1, 1), 5001)), "excluded_dates"),
        (replace(BANK, excluded_dates=frozenset({date(1969, 12, 31)})), "excluded_dates"),
        (replace(BANK, excluded_dates=frozenset({date(2200, 1, 1)})), "excluded_dates"),
        (
            replace(BANK, excluded_dates=frozenset({datetime(2027, 1, 1, tzinfo=UTC)})),
            "excluded_dates",
        ),
        (
            Calendar("long", excluded_dates=days(date(2027, 1, 1), 367)),
            "excluded_dates",
        ),
    ],
)
def test_a_calendar_that_cannot_be_kept_is_refused(calendar: Calendar, field: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        validate(calendar)
    assert raised.value.field == field
    assert raised.value.hint


def test_a_year_in_a_row_may_be_excluded() -> None:
    validate(Calendar("year", excluded_dates=days(date(2027, 1, 1), 366)))


def test_a_calendar_s_zone_must_exist() -> None:
    with pytest.raises(InvalidTimezone):
        validate(replace(BANK, timezone="Mars/Olympus"))


@pytest.mark.parametrize(
    ("zone", "day", "start"),
    [
        ("UTC", date(2027, 1, 1), "2027-01-01T00:00"),
        ("America/New_York", date(2027, 3, 14), "2027-03-14T05:00"),
        ("America/New_York", date(2027, 3, 15), "2027-03-15T04:00"),
        ("Asia/Beirut", date(2022, 3, 27), "2022-03-26T22:00"),  # 00:00 became 01:00
        ("America/Toronto", date(1919, 3, 31), "1919-03-31T04:30"),  # 23:30 became 00:30
        ("America/St_Johns", date(2006, 10, 29), "2006-10-29T02:30"),  # 00:01 became 23:01
        ("Pacific/Apia", date(2011, 12, 31), "2011-12-30T10:00"),  # the 30th was left out
    ],
)
def test_a_day_begins_at_its_first_instant(zone: str, day: date, start: str) -> None:
    begin = datetime.fromisoformat(start).replace(tzinfo=UTC)
    assert day_start(ZoneInfo(zone), day) == begin
    assert day_of(ZoneInfo(zone), begin) == day


def test_an_hour_shown_again_belongs_to_the_day_that_had_begun() -> None:
    shown_again = datetime(2006, 10, 29, 2, 45, tzinfo=UTC)
    zone = ZoneInfo("America/St_Johns")
    assert shown_again.astimezone(zone).date() == date(2006, 10, 28)
    assert day_of(zone, shown_again) == date(2006, 10, 29)
