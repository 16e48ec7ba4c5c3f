import math

import pytest

from foliot.core.errors import InvalidInput
from foliot.core.priorities import (
    PRIORITY_WORDS,
    SHARES,
    TIER_WEIGHTS,
    Tier,
    check_tier_weight,
    parse_priority,
)


@pytest.mark.parametrize(
    ("value", "priority"),
    [
        (1, 1),
        (10, 10),
        ("critical", 1),
        ("HIGH", 3),
        (" Normal ", 5),
        ("low", 8),
        ("7", 7),
        ("10", 10),
    ],
)
def test_numbers_and_words_name_a_priority(value: object, priority: int) -> None:
    assert parse_priority(value) == priority


@pytest.mark.parametrize(
    "value", [0, 11, -1, 5.0, True, None, "", "urgent", "0", "11", "²", "1e1", "9" * 5000, [5]]
)
def test_anything_else_is_refused_with_the_fix(value: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_priority(value)
    assert caught.value.field == "priority"
    assert caught.value.hint == "use 1 (most urgent) to 10, or critical, high, normal, low"
    assert len(str(caught.value)) < 160


def test_every_word_is_a_priority_of_the_scale() -> None:
    assert {SHARES[priority] > 0 for priority in PRIORITY_WORDS.values()} == {True}


def test_each_step_of_priority_is_the_same_factor() -> None:
    factors = [SHARES[priority] / SHARES[priority + 1] for priority in range(1, 10)]
    assert factors == pytest.approx([2 ** (5 / 9)] * 9)


def test_every_tier_has_a_usable_weight() -> None:
    assert {tier: check_tier_weight(TIER_WEIGHTS[tier], tier=tier) for tier in Tier} == {
        Tier.ENTERPRISE: 10,
        Tier.PRO: 3,
        Tier.FREE: 1,
        Tier.UNLIMITED: 10,
    }


@pytest.mark.parametrize("weight", [0, -1, math.nan, math.inf, 1e6])
def test_a_weight_that_ranks_cannot_be_counted_with_is_refused(weight: float) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_tier_weight(weight, tier="pro")
    assert caught.value.field == "tiers.pro.weight"
