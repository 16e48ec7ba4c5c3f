"""Who fires what is overdue: its owner while it makes progress, anybody otherwise."""

from datetime import UTC, datetime, timedelta

import pytest

from foliot.core.overdue import STILL_FOR, Verdict, Watched, judge, moved, quiet

NOW = datetime(2027, 1, 1, tzinfo=UTC)
SOON, LATER = NOW + timedelta(seconds=0.25), NOW + STILL_FOR


@pytest.mark.parametrize(
    ("owned", "before", "fire", "take"),
    [
        # At a first look everybody may be behind, and only what is nobody's is fired.
        (False, None, True, True),
        (True, None, False, False),
        # What was not overdue before gets another look, unless it has been overdue for long.
        (False, Watched(), True, True),
        (True, Watched(), False, True),
        # Its owner makes progress.
        (True, Watched("other"), False, True),
        # It stands still.
        (False, Watched("head"), True, True),
        (True, Watched("head"), True, True),
        # It stood still a moment ago, and has been swept.
        (True, Watched("other", LATER), True, True),
        (True, Watched(None, LATER), True, True),
        (True, Watched("other", NOW), False, True),
    ],
)
def test_whose_turn_it_is(owned: bool, before: Watched | None, fire: bool, take: bool) -> None:
    verdict = judge("head", before, NOW, owned=owned, progress=False)
    assert (verdict.fire, verdict.take) == (fire, take)


def look(head: str, before: Watched | None, now: datetime) -> Verdict:
    return judge(head, before, now, owned=True, progress=False)


def test_a_head_that_is_the_same_at_the_next_look_stands_still() -> None:
    first = look("head", Watched(), NOW)
    assert not first.fire
    assert look("head", first.watched, SOON).fire
    assert not look("next", first.watched, SOON).fire


def test_a_shard_that_was_swept_needs_no_second_look_for_a_while() -> None:
    swept = look("head", Watched("head"), NOW).watched
    calm = quiet(swept, SOON)
    assert calm is not None
    assert look("next", calm, SOON).fire
    assert quiet(swept, LATER) is None
    assert quiet(Watched("head"), NOW) is None


def test_what_we_have_just_fired_is_not_standing_still() -> None:
    assert quiet(Watched("head", LATER), NOW) == Watched(None, LATER)


@pytest.mark.parametrize(
    ("owned", "before", "fire"),
    [
        (False, Watched("head"), True),
        (True, Watched("head"), False),
        (True, Watched("other", LATER), True),
    ],
)
def test_an_owner_at_work_in_one_shard_comes_to_the_others(
    owned: bool, before: Watched, fire: bool
) -> None:
    verdict = judge("head", before, NOW, owned=owned, progress=True)
    assert (verdict.fire, verdict.take) == (fire, True)


def test_a_shard_has_moved_when_its_head_is_gone_and_not_by_us() -> None:
    before = {
        1: Watched("same"),
        2: Watched("old"),
        3: Watched("fired"),
        4: Watched("swept", LATER),
        5: Watched(None, LATER),
    }
    heads = {1: "same", 2: "new", 4: "next", 6: "first"}
    assert moved(before, heads) == {2, 3}
