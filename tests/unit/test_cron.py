"""The cron dialect: what each expression matches, and what is refused and why."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest

from foliot.core.cron.expression import parse
from foliot.core.cron.fields import members
from foliot.core.cron.wall import count_walls, next_wall, previous_wall
from foliot.core.errors import InvalidCron

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def wall(year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0) -> int:
    moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    return (moment - EPOCH) // timedelta(seconds=1)


def shown(seconds: int | None) -> str | None:
    if seconds is None:
        return None
    return (EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M:%S")


def days_of(expression: str, year: int, month: int) -> list[int]:
    """The matching days of one month, found by stepping from match to match."""
    cron = parse(expression)
    found: list[int] = []
    position = next_wall(cron, wall(year, month, 1))
    while position is not None:
        day = date(1970, 1, 1) + timedelta(seconds=position)
        if (day.year, day.month) != (year, month):
            break
        found.append(day.day)
        position = next_wall(cron, (position // 86_400 + 1) * 86_400)
    return found


@pytest.mark.parametrize(
    ("field", "minutes"),
    [
        ("*", tuple(range(60))),
        ("5", (5,)),
        ("05", (5,)),
        ("1,2,40", (1, 2, 40)),
        ("10-13", (10, 11, 12, 13)),
        ("*/20", (0, 20, 40)),
        ("*/60", (0,)),
        ("50/3", (50, 53, 56, 59)),
        ("10-20/5", (10, 15, 20)),
        ("5-5", (5,)),
        ("0,10-12,*/30", (0, 10, 11, 12, 30)),
    ],
)
def test_a_field_is_a_set_of_values(field: str, minutes: tuple[int, ...]) -> None:
    assert members(parse(f"{field} 0 * * *").minutes) == minutes


@pytest.mark.parametrize(
    ("field", "weekdays"),
    [
        ("SUN", (0,)),
        ("0", (0,)),
        ("7", (0,)),
        ("mon-fri", (1, 2, 3, 4, 5)),
        ("5-7", (0, 5, 6)),
        ("FRI-MON", (0, 1, 5, 6)),
        ("5-1", (0, 1, 5, 6)),
        ("7-2", (0, 1, 2)),
        ("SAT-SUN", (0, 6)),
        ("FRI-TUE/2", (0, 2, 5)),
        ("*/2", (0, 2, 4, 6)),
        ("1/2", (1, 3, 5)),
        ("SUN/3", (0, 3, 6)),
        ("7/3", (0, 3, 6)),
        ("0-7", (0, 1, 2, 3, 4, 5, 6)),
        ("6-6", (6,)),
    ],
)
def test_weekdays_are_a_circle(field: str, weekdays: tuple[int, ...]) -> None:
    assert members(parse(f"0 0 * * {field}").days.week_days.days) == weekdays


def test_months_have_names() -> None:
    assert members(parse("0 0 1 jan,Mar-MAY *").months) == (1, 3, 4, 5)


def test_six_fields_begin_with_seconds_and_five_mean_second_zero() -> None:
    six = parse("10 20 3 * * *")
    assert (members(six.seconds), members(six.minutes), members(six.hours)) == ((10,), (20,), (3,))
    assert members(parse("20 3 * * *").seconds) == (0,)


@pytest.mark.parametrize(
    ("macro", "spelled_out"),
    [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@ANNUALLY", "0 0 1 1 *"),
        ("  0\t0  1 1 * ", "0 0 1 1 *"),
        ("0 0 ? * ?", "0 0 * * *"),
        ("0 0 1 1 ?", "0 0 1 1 *"),
    ],
)
def test_two_ways_to_write_one_expression(macro: str, spelled_out: str) -> None:
    left, right = parse(macro), parse(spelled_out)
    assert (left.minutes, left.hours, left.months) == (right.minutes, right.hours, right.months)
    assert left.days.by_shape == right.days.by_shape
    assert left.real_time == right.real_time


# February 2026 begins on a Sunday and ends on a Saturday; August 2026 begins on a Saturday and
# ends on a Monday; May 2026 begins on a Friday and ends on a Sunday.
@pytest.mark.parametrize(
    ("fields", "year", "month", "days"),
    [
        ("L * *", 2026, 2, [28]),
        ("L * *", 2028, 2, [29]),
        ("L * *", 2026, 4, [30]),
        ("L-3 * *", 2026, 4, [27]),
        ("L-30 * *", 2026, 5, [1]),
        ("L-30 * *", 2026, 4, []),
        ("LW * *", 2026, 2, [27]),
        ("LW * *", 2026, 5, [29]),
        ("LW * *", 2026, 8, [31]),
        ("15W * *", 2026, 8, [14]),
        ("15W * *", 2026, 2, [16]),
        ("15W * *", 2026, 7, [15]),
        ("1W * *", 2026, 8, [3]),
        ("1W * *", 2026, 2, [2]),
        ("31W * *", 2026, 5, [29]),
        ("31W * *", 2026, 10, [30]),
        ("31W * *", 2026, 4, []),
        ("30W * *", 2026, 5, [29]),
        ("28W * *", 2026, 2, [27]),
        ("1,15W,L * *", 2026, 8, [1, 14, 31]),
        ("* * 5L", 2026, 5, [29]),
        ("* * FRIL", 2026, 2, [27]),
        ("* * 7L", 2026, 5, [31]),
        ("* * 0L", 2026, 5, [31]),
        ("* * 2#3", 2026, 5, [19]),
        ("* * TUE#3", 2026, 2, [17]),
        ("* * MON#5", 2026, 8, [31]),
        ("* * MON#5", 2026, 5, []),
        ("* * MON#1,FRIL", 2026, 5, [4, 29]),
        ("* * SAT,MON#1", 2026, 5, [2, 4, 9, 16, 23, 30]),
    ],
)
def test_days_counted_from_the_end_and_by_week(
    fields: str, year: int, month: int, days: list[int]
) -> None:
    assert days_of(f"0 0 {fields}", year, month) == days


@pytest.mark.parametrize(
    ("fields", "days"),
    [
        ("13 * FRI", [1, 8, 13, 15, 22, 29]),  # both restricted: either
        ("1-31 * FRI", list(range(1, 32))),
        ("13 * */2", []),  # the 13th of May 2026 is a Wednesday
        ("14 * */2", [14]),  # a Thursday
        ("*/2 * FRI", [1, 15, 29]),  # a star at the front: both
        ("* * FRI", [1, 8, 15, 22, 29]),
        ("? * FRI", [1, 8, 15, 22, 29]),
        ("15 * ?", [15]),
        ("*,13 * FRI", [1, 8, 15, 22, 29]),
        ("13,* * FRI", list(range(1, 32))),  # begins with 13, so it counts as restricted
        ("L * FRI#1", [1, 31]),
    ],
)
def test_two_day_fields_are_either_or_unless_one_begins_with_a_star(
    fields: str, days: list[int]
) -> None:
    assert days_of(f"0 0 {fields}", 2026, 5) == days


def test_a_date_that_a_month_lacks_does_not_spill_into_the_next() -> None:
    cron = parse("0 0 31 * MON")
    assert next_wall(cron, wall(2026, 2, 24)) == wall(2026, 3, 2)
    assert next_wall(cron, wall(2026, 3, 31)) == wall(2026, 3, 31)


@pytest.mark.parametrize(
    ("expression", "after", "expected"),
    [
        ("0 0 29 2 *", wall(2026, 1, 1), "2028-02-29 00:00:00"),
        ("0 0 29 2 *", wall(2096, 3, 1), "2104-02-29 00:00:00"),
        ("0 0 ? 2 MON#5", wall(2026, 1, 1), "2044-02-29 00:00:00"),
        ("0 0 ? 2 MON#5", wall(2072, 3, 1), "2112-02-29 00:00:00"),  # the longest wait
        ("0 0 29 2 */6", wall(2076, 3, 1), "2088-02-29 00:00:00"),  # a Saturday or a Sunday
        ("59 59 23 31 12 *", wall(9999, 12, 31, 23, 59, 59), "9999-12-31 23:59:59"),
        ("0 0 1 1 *", wall(9999, 1, 2), None),
    ],
)
def test_rare_days_are_found_and_time_ends_with_the_year_9999(
    expression: str, after: int, expected: str | None
) -> None:
    assert shown(next_wall(parse(expression), after)) == expected


def test_the_search_backwards_ends_with_the_year_1() -> None:
    cron = parse("0 0 2 1 *")
    assert shown(previous_wall(cron, wall(2026, 1, 1))) == "2025-01-02 00:00:00"
    assert previous_wall(cron, wall(1, 1, 1, 5)) is None
    assert previous_wall(cron, wall(1, 1, 1) - 1) is None
    assert next_wall(cron, wall(1, 1, 1) - 99_999_999) == wall(1, 1, 2)


def test_a_count_needs_no_listing() -> None:
    every_second = parse("* * * * * *")
    assert count_walls(every_second, wall(2026, 1, 1), wall(2027, 1, 1)) == 365 * 86_400
    assert count_walls(every_second, wall(2026, 1, 1), wall(2026, 1, 1)) == 0
    assert count_walls(every_second, wall(2026, 1, 1, 12), wall(2026, 1, 1, 6)) == 0
    quarter = parse("0,15,30,45 9-17 * * 1-5")
    assert count_walls(quarter, wall(2026, 5, 4, 9, 15), wall(2026, 5, 4, 9, 46)) == 3
    assert count_walls(quarter, wall(2026, 5, 1, 17, 45), wall(2026, 5, 4, 9, 1)) == 2
    assert count_walls(parse("0 0 29 2 *"), wall(1, 1, 1), wall(9999, 12, 31)) == 2424
    whole = (wall(1, 1, 1) - 5 * 86_400, wall(9999, 12, 31) + 5 * 86_400)
    assert count_walls(parse("0 0 29 2 *"), *whole) == 2424
    assert count_walls(parse("0 0 1 1 *"), *whole) == 9999


class TestHash:
    def test_one_seed_has_one_value_and_seeds_spread(self) -> None:
        assert parse("H H * * *", seed="a") == parse("H H * * *", seed="a")
        drawn = [members(parse("H * * * *", seed=str(n)).minutes) for n in range(2000)]
        assert set(drawn) == {(minute,) for minute in range(60)}
        assert max(drawn.count((minute,)) for minute in range(60)) < 70  # 33 each on average

    def test_fields_draw_apart(self) -> None:
        drawn = {
            (members(cron.seconds), members(cron.minutes))
            for cron in (parse("H H 1 * * *", seed=str(n)) for n in range(200))
        }
        assert sum(second != minute for second, minute in drawn) > 150

    @pytest.mark.parametrize("seed", ["a", "b", "c", "d", ""])
    def test_a_range_holds_the_value_and_a_step_begins_somewhere(self, seed: str) -> None:
        cron = parse("H(10-19) H/6 H H(3-4) H(FRI-MON)", seed=seed)
        (minute,) = members(cron.minutes)
        hours = members(cron.hours)
        assert 10 <= minute <= 19
        assert hours == tuple(range(hours[0], 24, 6))
        assert hours[0] < 6
        assert members(cron.months)[0] in {3, 4}
        assert members(cron.days.month_days.days)[0] <= 28
        assert set(members(cron.days.week_days.days)) < {0, 1, 5, 6}

    def test_a_step_over_a_range_stays_inside(self) -> None:
        for seed in "abcdefgh":
            minutes = members(parse("H(10-29)/7 * * * *", seed=seed).minutes)
            assert 10 <= minutes[0] <= 16
            assert minutes[-1] <= 29
            assert {b - a for a, b in pairwise(minutes)} == {7}

    def test_a_step_longer_than_its_range_still_draws_one(self) -> None:
        for seed in "abcdefgh":
            assert len(members(parse("H(10-12)/30 * * * *", seed=seed).minutes)) == 1

    def test_the_drawn_value_never_changes_between_versions(self) -> None:
        cron = parse("H H H * *", seed="01980000-0000-7000-8000-000000000000")
        drawn = (cron.minutes, cron.hours, cron.days.month_days.days)
        assert tuple(members(mask)[0] for mask in drawn) == (47, 19, 1)

    def test_h_in_one_day_field_is_seen_beside_any_other(self) -> None:
        drawn = {parse("0 0 L * H", seed=str(n)).days.week_days.days for n in range(99)}
        assert len(drawn) == 7

    def test_without_h_the_seed_makes_no_difference(self) -> None:
        assert parse("0 0 * * THU", seed="a") is parse("0 0 * * THU", seed="b")


@pytest.mark.parametrize(
    ("expression", "culprit", "advice"),
    [
        ("60 * * * *", "minute 60", "0 to 59"),
        ("* 24 * * *", "hour 24", "0 to 23"),
        ("* * 0 * *", "day of month 0", "1 to 31"),
        ("* * * 13 *", "month 13", "JAN to DEC"),
        ("* * * * 8", "day of week 8", "0 to 7, or SUN to SAT"),
        ("60 * * * * *", "second 60", "0 to 59"),
        ("* * * FOO *", "month 'FOO'", "JAN to DEC"),
        ("*/0 * * * *", "minute '*/0'", "1 to 60"),
        ("*/61 * * * *", "minute '*/61'", "1 to 60"),
        ("*/ * * * *", "minute '*/'", "1 to 60"),
        ("*/x * * * *", "minute '*/X'", "1 to 60"),
        ("30-10 * * * *", "minute range '30-10'", "30-59,0-10"),
        ("* * * DEC-FEB *", "month range 'DEC-FEB'", "DEC-12,1-FEB"),
        ("? * * * *", "minute '?'", "0 to 59"),
        ("* * ?,1 * *", "day of month '?'", "1 to 31"),
        ("1,,2 * * * *", "minute '1,,2'", "comma"),
        (", * * * *", "minute ','", "comma"),
        ("1- * * * *", "minute '1-'", "0 to 59"),
        ("-1 * * * *", "minute '-1'", "0 to 59"),
        ("1.5 * * * *", "minute '1.5'", "0 to 59"),
        ("1e1 * * * *", "minute '1E1'", "0 to 59"),
        ("L * * * *", "minute 'L'", "0 to 59"),
        ("* * * * L", "day of week 'L'", "FRIL"),
        ("* * * * 2#6", "day of week '2#6'", "#1 to #5"),
        ("* * * * 2#0", "day of week '2#0'", "#1 to #5"),
        ("* * * * 8#1", "day of week 8", "0 to 7"),
        ("* * * * XL", "day of week 'X'", "SUN to SAT"),
        ("* * 32W * *", "day of month 32", "1 to 31"),
        ("* * L-31 * *", "day of month 'L-31'", "L-30"),
        ("* * L-0 * *", "day of month 'L-0'", "L-1"),
        ("* * W * *", "day of month 'W'", "1 to 31"),
        ("H(9-5) * * * *", "minute range 'H(9-5)'", "9-59,0-5"),
        ("H(0-60) * * * *", "minute 60", "0 to 59"),
        ("H() * * * *", "minute 'H()'", "0 to 59"),
        ("* * * *", "4 fields", "five"),
        ("* * * * * * *", "7 fields", "seconds first"),
        ("", "0 fields", "five"),
        ("   ", "0 fields", "five"),
        ("@reboot", "'@reboot'", "@hourly"),
        ("@", "'@'", "@daily"),
        ("0\n0 1 1 *", "4 fields", "five"),
        (",".join(["1"] * 65) + " * * * *", "minute lists 65", "at most 64"),
        ("1" * 257, "257 characters", "at most 256"),
        ("٣ * * * *", "characters", ""),
        ("0 0 * * frı", "characters", ""),
        ("99999999999999 * * * *", "minute '99999999999999'", "0 to 59"),
    ],
)
def test_a_refusal_names_the_field_and_the_fix(expression: str, culprit: str, advice: str) -> None:
    with pytest.raises(InvalidCron) as refused:
        parse(expression)
    assert culprit in refused.value.reason
    assert advice in (refused.value.hint or "")
    assert refused.value.field == "cron_expression"
    assert refused.value.expression == expression[:256]


@pytest.mark.parametrize(
    "expression",
    [
        "0 0 30 2 *",
        "0 0 30,31 2 ?",
        "0 0 31 4,6 *",
        "0 0 31 2,4,6,9,11 *",
        "0 0 31W 2 *",
        "0 0 30W 2 *",
        "0 0 L-30 4 *",
        "0 0 L-29 2 *",
        "0 0 31 4 */2",
        "0 0 */31 * MON#2",
        "0 0 30 2 *,MON",
    ],
)
def test_what_can_never_match_is_refused(expression: str) -> None:
    with pytest.raises(InvalidCron, match="never match"):
        parse(expression)


@pytest.mark.parametrize(
    "expression",
    ["0 0 29 2 *", "0 0 30 2 MON", "0 0 29W 2 *", "0 0 L-28 2 *", "0 0 * 2 MON#5", "0 0 31 1-4 *"],
)
def test_what_matches_rarely_is_accepted(expression: str) -> None:
    assert next_wall(parse(expression), wall(2026, 1, 1)) is not None


@pytest.mark.parametrize(
    ("hour", "real_time"),
    [("*", True), ("*/2", True), ("*,5", True), ("0-23", False), ("H", False), ("0/2", False)],
)
def test_an_hour_field_that_begins_with_a_star_runs_in_real_time(
    hour: str, real_time: bool
) -> None:
    assert parse(f"0 {hour} * * *").real_time is real_time


def test_parsing_is_remembered() -> None:
    assert parse("1 2 3 4 5") is parse("1 2 3 4 5")
