"""The dialect against two other readers of cron, and what holds for every expression.

Where the others read an expression otherwise, it is left out here, for these reasons:

cronsim
- knows no `W`, `L-3`, `H`, `?`, macros or wrapped weekday ranges, and takes `5L` but not `FRIL`.
- runs `N/step` in the weekday field up to 7, so that `1/2` includes Sunday; here the week's last
  day is Saturday, as in `*/2`.
- accepts steps larger than the field, which match once; here they are refused as slips.
- reads `5-5/2` as `5/2`; here a range of one value is that value, so ranges span two or more.
- gives up after 50 years; no expression here has to wait that long.
- runs six-field expressions, and those whose minute field begins with `*`, in real time through a
  DST change; here the hour field alone decides. It returns one instant for each time that a gap
  swallowed, though they coincide; here they are one.
- finds out while running that some expressions never match; here they are refused when parsed.

croniter
- wants seconds as the last of six fields; they are moved there.
- reads `*/2` in a day field as a restriction unless asked for Vixie cron's rule; it is asked.
- reads `5-5` as a full circle; here it is 5.
- wants both day fields to match when one is like `2#3`; here either, so the other is `*` there.
- takes a list that happens to hold every value for `*`, as in `13,* * FRI` or `13 * 0-6`; here
  what the field begins with decides, so such fields are left out.
- rejects `LW` and `5L` (it writes the latter `L5`), and `W`.
- reads `7` in a range or with a step in ways of its own; weekdays are written 0 to 6 for it.
- fires a time twice on an autumn night, so it is asked in UTC only.
"""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter
from cronsim import CronSim
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from foliot.core.cron.clock import count_instants, next_instant, previous_instant
from foliot.core.cron.expression import Cron, parse
from foliot.core.cron.fields import members
from foliot.core.cron.words import describe
from foliot.core.errors import InvalidCron
from foliot.core.model import DstGap, DstOverlap
from foliot.core.zones import zone

RUN, FIRST = DstGap.RUN_AFTER_GAP, DstOverlap.FIRST
MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]

moments = st.datetimes(
    min_value=datetime(1970, 1, 2),  # noqa: DTZ001  hypothesis wants naive bounds
    max_value=datetime(2090, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
)


def plain_items(low: int, high: int) -> st.SearchStrategy[str]:
    """`*`, values, ranges and steps, as every cron knows them."""
    value = st.integers(low, high)
    step = st.integers(1, high - low)
    span = st.lists(value, min_size=2, max_size=2, unique=True).map(sorted)
    return st.one_of(
        st.just("*"),
        value.map(str),
        step.map(lambda n: f"*/{n}"),
        span.map(lambda pair: f"{pair[0]}-{pair[1]}"),
        st.tuples(span, step).map(lambda got: f"{got[0][0]}-{got[0][1]}/{got[1]}"),
    )


def lists(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(items, st.lists(items, min_size=1, max_size=3).map(",".join))


def fields(*parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map(" ".join)


minutes = lists(plain_items(0, 59))
hours = lists(plain_items(0, 23))
dates = lists(plain_items(1, 31))
months = lists(st.one_of(plain_items(1, 12), st.sampled_from(MONTHS)))
weekdays = lists(st.one_of(plain_items(0, 6), st.sampled_from(WEEKDAYS)))
nth_weekdays = st.tuples(st.integers(0, 6), st.integers(1, 4)).map(lambda got: f"{got[0]}#{got[1]}")

shared_dates = lists(st.one_of(plain_items(1, 31), st.just("L")))
shared_days = st.one_of(
    fields(shared_dates, months, weekdays), fields(st.just("*"), months, nth_weekdays)
)
cronsim_dates = lists(st.one_of(plain_items(1, 31), st.just("L"), st.just("LW")))
cronsim_weekdays = lists(
    st.one_of(
        plain_items(0, 6), nth_weekdays, st.integers(0, 7).map(lambda day: f"{day}L"), st.just("7")
    )
)
own_dates = lists(
    st.one_of(
        plain_items(1, 31),
        st.sampled_from(["L", "LW", "L-3", "L-30", "15W", "1W", "31W", "H", "H(5-20)", "H/9"]),
    )
)
own_weekdays = lists(
    st.one_of(plain_items(0, 6), nth_weekdays, st.sampled_from(["FRIL", "5-1", "FRI-MON/2", "H"]))
)


own = st.one_of(
    fields(minutes, hours, own_dates, months, own_weekdays),
    fields(minutes, minutes, hours, own_dates, months, own_weekdays),
)


def accepted(expression: str) -> Cron:
    try:
        return parse(expression, seed="a job")
    except InvalidCron:
        assume(False)
        raise


def following(cron: Cron, where: ZoneInfo, after: datetime, count: int) -> list[datetime]:
    found: list[datetime] = []
    while len(found) < count:
        instant = next_instant(cron, where, found[-1] if found else after, RUN, FIRST)
        if instant is None:
            break
        found.append(instant.at)
    return found


@settings(deadline=None, max_examples=300)
@given(
    st.one_of(
        fields(minutes, hours, cronsim_dates, months, cronsim_weekdays),
        fields(minutes, minutes, hours, cronsim_dates, months, cronsim_weekdays),
    ),
    moments,
)
@example("0 0 29 2 *", datetime(2096, 3, 1, tzinfo=UTC))
@example("0 0 13 * 5", datetime(2026, 1, 1, tzinfo=UTC))
@example("0 0 */2 * MON", datetime(2026, 1, 1, tzinfo=UTC))
@example("0 0 LW * 5L", datetime(2026, 1, 1, tzinfo=UTC))
def test_cronsim_finds_the_same_instants(expression: str, after: datetime) -> None:
    cron = accepted(expression)
    theirs = CronSim(expression, after)
    assert following(cron, zone("UTC"), after, 5) == [next(theirs) for _ in range(5)]


@settings(deadline=None, max_examples=150)
@given(fields(minutes, hours, cronsim_dates, months, cronsim_weekdays), moments)
def test_cronsim_finds_the_same_instants_backwards(expression: str, before: datetime) -> None:
    cron = accepted(expression)
    assume(before.year > 2020)
    theirs = CronSim(expression, before, reverse=True)
    for _ in range(5):
        ours = previous_instant(cron, zone("UTC"), before, RUN, FIRST)
        assert ours is not None
        before = ours.at
        assert before == next(theirs)


@settings(deadline=None, max_examples=200)
@given(
    fields(
        lists(st.integers(0, 59).map(str)),
        st.one_of(st.just("*"), lists(st.integers(0, 4).map(str))),
        st.just("*"),
        st.just("*"),
        st.just("*"),
    ),
    st.sampled_from(["America/New_York", "Europe/London", "Australia/Sydney", "Asia/Tehran"]),
    st.integers(2000, 2037),
    st.sampled_from([(3, 7), (3, 20), (3, 27), (4, 1), (9, 20), (10, 1), (10, 24), (11, 1)]),
)
def test_cronsim_crosses_dst_changes_alike(
    expression: str, zone_name: str, year: int, day: tuple[int, int]
) -> None:
    where = zone(zone_name)
    after = datetime(year, *day, tzinfo=where)
    until = after.astimezone(UTC) + timedelta(days=9)
    minute_field, hour_field = expression.split()[:2]
    assume(hour_field == "*" or not minute_field.startswith("*"))
    theirs: list[datetime] = []
    for local in CronSim(expression, after):
        moment = local.astimezone(UTC)
        if moment > until:
            break
        if not theirs or moment > theirs[-1]:
            theirs.append(moment)
    assert following(parse(expression), where, after, len(theirs)) == theirs


def holds_everything_without_a_star(cron: Cron) -> bool:
    dates, weekdays = cron.days.month_days, cron.days.week_days
    every_date = dates.days.bit_count() == 31 and not dates.open
    return every_date or (weekdays.days.bit_count() == 7 and not weekdays.open)


@settings(deadline=None, max_examples=120)
@given(fields(minutes, hours, shared_days), moments)
@example("0 0 */2 * 1", datetime(2026, 1, 1, tzinfo=UTC))
def test_croniter_finds_the_same_instants(expression: str, after: datetime) -> None:
    cron = accepted(expression)
    assume(not holds_everything_without_a_star(cron))
    theirs = croniter(expression, after, implement_cron_bug=True)
    found = [theirs.get_next(datetime) for _ in range(3)]
    assert following(cron, zone("UTC"), after, 3) == found


@settings(deadline=None, max_examples=100)
@given(minutes, minutes, hours, moments)
def test_croniter_finds_the_same_seconds(
    second: str, minute: str, hour: str, after: datetime
) -> None:
    theirs = croniter(f"{minute} {hour} * * * {second}", after, implement_cron_bug=True)
    found = [theirs.get_next(datetime) for _ in range(3)]
    assert following(parse(f"{second} {minute} {hour} * * *"), zone("UTC"), after, 3) == found


@settings(deadline=None, max_examples=600)
@given(
    st.one_of(
        st.text(max_size=300),
        st.text(alphabet="0123456789*/-,#?LWHlwh()@ \tMONSUJAVR\n", max_size=40),
        fields(*[st.text(alphabet="0123456789*/-,#?LWH()MONFRI", min_size=1, max_size=6)] * 5),
        own,
    ),
    st.text(max_size=5),
)
def test_any_text_is_parsed_or_refused(text: str, seed: str) -> None:
    try:
        cron = parse(text, seed=seed)
    except InvalidCron as refused:
        assert refused.reason  # noqa: PT017  not every text is refused
    else:
        found = next_instant(cron, zone("UTC"), datetime(2026, 1, 1, tzinfo=UTC), RUN, FIRST)
        assert found is not None
        assert describe(cron, "UTC").endswith(", UTC")


@settings(deadline=None, max_examples=300)
@given(own, moments, st.sampled_from(["UTC", "America/New_York", "Australia/Lord_Howe"]))
def test_next_previous_and_count_agree(expression: str, after: datetime, zone_name: str) -> None:
    cron, where = accepted(expression), zone(zone_name)
    found = following(cron, where, after, 20)
    for earlier, later in zip([after, *found], found, strict=False):
        assert later > earlier
        assert count_instants(cron, where, earlier, later, RUN, FIRST) == 1
        back = previous_instant(cron, where, later, RUN, FIRST)
        assert back is None or back.at <= earlier
        again = previous_instant(cron, where, later + timedelta(microseconds=1), RUN, FIRST)
        assert again is not None
        assert again.at == later
    assert count_instants(cron, where, after, found[-1], RUN, FIRST) == len(found)


@settings(deadline=None, max_examples=200)
@given(own, moments, st.timedeltas(timedelta(), timedelta(days=900)), st.floats(0, 1))
def test_counts_add_up(expression: str, after: datetime, span: timedelta, share: float) -> None:
    cron, where = accepted(expression), zone("Europe/Berlin")
    middle, until = after + span * share, after + span
    left = count_instants(cron, where, after, middle, RUN, FIRST)
    right = count_instants(cron, where, middle, until, RUN, FIRST)
    assert left + right == count_instants(cron, where, after, until, RUN, FIRST)


@settings(deadline=None, max_examples=400)
@given(own, own)
@example("0 0 13 * 5", "0 0 13 * */5")
@example("*/7 * * * *", "0-56/7 * * * *")
def test_different_times_are_described_differently(one: str, other: str) -> None:
    first, second = accepted(one), accepted(other)
    if describe(first, "UTC") == describe(second, "UTC"):
        assert _matched(first) == _matched(second)


@pytest.mark.parametrize("tail", ["* * *", "1 * *", "* * MON", "L * FRI", "*/2 * MON", "31 1 *"])
def test_no_two_small_schedules_share_their_words(tail: str) -> None:
    items = ["*", "0", "5", "*/5", "*/7", "3/15", "0-10", "1,2", "1-3", "0,30"]
    times = [f"{m} {h}" for m in items for h in ["*", "0", "9-17", "*/2", "*/5", "1,2", "9,11,15"]]
    times += [f"{s} {time}" for s in items for time in times[::3]]
    seen: dict[str, Cron] = {}
    for time in times:
        cron = parse(f"{time} {tail}")
        same = seen.setdefault(describe(cron, "UTC"), cron)
        assert _matched(same) == _matched(cron), (same.expression, cron.expression)


def _matched(cron: Cron) -> tuple[object, ...]:
    """What an expression matches: its times of day, and its days in each kind of month."""
    lengths = {
        month: (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]
        for month in members(cron.months)
    }
    shapes = {
        length: cron.days.by_shape[(length - 28) * 7 : (length - 27) * 7]
        for length in lengths.values()
    }
    return cron.seconds, cron.minutes, cron.hours, cron.months, tuple(sorted(shapes.items()))
