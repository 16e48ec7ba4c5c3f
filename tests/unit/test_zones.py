"""Zones by name, and the stretches of time between changes of their offset."""

import struct
from io import BytesIO
from zoneinfo import ZoneInfo

import pytest

from foliot.core.errors import InvalidTimezone
from foliot.core.zones import DAY, EARLIEST, LATEST, stretch_at, zone, zone_names


@pytest.mark.parametrize("name", ["UTC", "America/New_York", "Asia/Kathmandu", "Etc/GMT+5"])
def test_a_zone_is_found_by_its_exact_name(name: str) -> None:
    assert zone(name).key == name
    assert zone(name) is zone(name)


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "/etc/localtime",
        "America/../UTC",
        "America",
        "america/new_york",
        "localtime",
        "posixrules",
        "Factory",
        "",
        "UTC\x00",
        "UTC ",
        "x" * 100_000,
    ],
)
def test_what_is_not_in_the_list_is_refused(name: str) -> None:
    with pytest.raises(InvalidTimezone) as refused:
        zone(name)
    assert refused.value.field == "timezone"
    assert refused.value.timezone == name
    assert len(refused.value.reason) < 200


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("america/new_york", "'America/New_York'"),
        ("America/New York", "'America/New_York'"),
        ("New York", "'America/New_York'"),
        ("Europe/Berln", "'Europe/Berlin'"),
        ("utc", "'UTC'"),
        ("Kathmandu", "'Asia/Kathmandu'"),
    ],
)
def test_a_near_miss_is_told_what_was_meant(typed: str, meant: str) -> None:
    with pytest.raises(InvalidTimezone) as refused:
        zone(typed)
    assert refused.value.hint == f"did you mean {meant}?"


def test_a_far_miss_is_shown_what_a_name_looks_like() -> None:
    with pytest.raises(InvalidTimezone, match="Europe/Berlin"):
        zone("§§§§§§§§")


def test_names_that_mean_the_machine_are_no_zones() -> None:
    assert zone_names().isdisjoint({"localtime", "posixrules", "Factory"})
    assert len(zone_names()) > 400


SPRING_2026, AUTUMN_2026 = 1_772_953_200, 1_793_512_800  # New York, 8 March and 1 November


def test_a_stretch_that_begins_with_a_gap_knows_what_was_left_out() -> None:
    summer = stretch_at(zone("America/New_York"), SPRING_2026)
    assert summer.start == SPRING_2026
    assert summer.offset == -4 * 3600
    assert summer.start + summer.offset - summer.gap_from == 3600
    assert summer.fresh_from == summer.start + summer.offset


def test_stretches_around_an_overlap_know_what_comes_twice() -> None:
    new_york = zone("America/New_York")
    before = stretch_at(new_york, AUTUMN_2026 - 1)
    after = stretch_at(new_york, AUTUMN_2026)
    assert (before.end, after.start) == (AUTUMN_2026, AUTUMN_2026)
    assert before.end + before.offset - before.repeated_from == 3600
    assert after.fresh_from - (after.start + after.offset) == 3600
    assert after.gap_from == after.start + after.offset


@pytest.mark.parametrize("name", ["UTC", "Etc/GMT-14", "Etc/GMT+12"])
def test_a_zone_that_never_changes_is_one_stretch(name: str) -> None:
    only = stretch_at(zone(name), 0)
    assert (only.start, only.end) == (EARLIEST, LATEST + 1)
    assert only.gap_from == only.fresh_from == only.start + only.offset
    assert only.repeated_from == only.end + only.offset


@pytest.mark.parametrize(
    "name", ["America/New_York", "Pacific/Apia", "Asia/Tokyo", "Africa/Monrovia"]
)
def test_stretches_follow_each_other_without_hole_from_the_first_year_to_the_last(
    name: str,
) -> None:
    somewhere = zone(name)
    assert stretch_at(somewhere, EARLIEST).start == EARLIEST
    instant = stretch_at(somewhere, -1_000_000_000).start
    while instant < 3_000_000_000:
        stretch = stretch_at(somewhere, instant)
        assert stretch.start == instant
        assert stretch.end > stretch.start
        instant = stretch.end
    assert stretch_at(somewhere, LATEST).end == LATEST + 1


def made_zone(offset: int, *changes: tuple[int, int]) -> ZoneInfo:
    """A zone with these changes (instant, offset), as a compiled file of the oldest version."""
    count = len(changes) + 1
    header = struct.pack(">4sc15x6l", b"TZif", b"\0", 0, 0, 0, count, count, 2)
    instants = struct.pack(f">{count}l", -2_000_000_000, *(instant for instant, _ in changes))
    offsets = [offset, *(new_offset for _, new_offset in changes)]
    kinds = b"".join(struct.pack(">lbB", seconds, 0, 0) for seconds in offsets)
    return ZoneInfo.from_file(BytesIO(header + instants + bytes(range(count)) + kinds + b"X\0"))


WINDOW = 384 * DAY  # zones are searched in windows that begin at multiples of this


@pytest.mark.parametrize("distance", [-DAY + 1, -1800, -1, 0, 1, 1800, DAY - 1])
@pytest.mark.parametrize(("before", "after"), [(3600, 0), (0, 3600), (12 * 3600, -11 * 3600)])
def test_a_change_near_the_edge_of_a_window_is_seen_from_both_sides(
    distance: int, before: int, after: int
) -> None:
    edge = 40 * WINDOW
    change = edge + distance
    somewhere = made_zone(before, (change, after))
    for instant in range(change - 2 * DAY, change + 2 * DAY, 900):
        stretch = stretch_at(somewhere, instant)
        offset = after if instant >= change else before
        assert stretch.start <= instant < stretch.end
        assert stretch.offset == offset
        second_pass = instant >= change and instant + offset < change + before
        assert (instant + offset < stretch.fresh_from) == second_pass
        first_pass = instant < change and instant + offset >= change + after
        assert (instant + offset >= stretch.repeated_from) == first_pass
        left_out = max(after - before, 0) if stretch.start == change else 0
        assert stretch.start + stretch.offset - stretch.gap_from == left_out


@pytest.mark.parametrize("days", range(13))
def test_two_changes_within_a_week_are_both_seen(days: int) -> None:
    first = 40 * WINDOW + 100 * DAY + days * DAY + 7_777
    second = first + 6 * DAY
    somewhere = made_zone(0, (first, 3600), (second, 0))
    between = stretch_at(somewhere, first + DAY)
    assert (between.start, between.end, between.offset) == (first, second, 3600)
