"""How urgent, and how large a part of the whole: priorities 1 to 10, and the tiers of tenants.

A priority divides its tenant's share and never enlarges it; a tier says how large that share is.
"""

import math
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from foliot.core.errors import InvalidInput

MOST_URGENT: Final = 1
LEAST_URGENT: Final = 10
DEFAULT_PRIORITY: Final = 5
PRIORITY_WORDS: Final[Mapping[str, int]] = MappingProxyType(
    {"critical": 1, "high": 3, "normal": 5, "low": 8}
)

# Nine steps from 10 to 1 make a factor of 2^5: priority 1 gets 32 turns for one of priority 10.
SHARES: Final[Mapping[int, float]] = MappingProxyType(
    {
        priority: 2 ** ((LEAST_URGENT - priority) * 5 / 9)
        for priority in range(MOST_URGENT, LEAST_URGENT + 1)
    }
)


class Tier(StrEnum):
    ENTERPRISE = "enterprise"
    PRO = "pro"
    FREE = "free"
    UNLIMITED = "unlimited"


TIER_WEIGHTS: Final[Mapping[Tier, float]] = MappingProxyType(
    {Tier.ENTERPRISE: 10.0, Tier.PRO: 3.0, Tier.FREE: 1.0, Tier.UNLIMITED: 10.0}
)
TIER_WEIGHT_MIN: Final = 0.1
TIER_WEIGHT_MAX: Final = 1000.0


def parse_priority(value: object) -> int:
    """The number that `value` means: 1 to 10, as a number or in digits, or one of the words."""
    if isinstance(value, str):
        word = value.strip().lower()
        if word in PRIORITY_WORDS:
            return PRIORITY_WORDS[word]
        number: object = int(word) if word.isascii() and word.isdigit() and len(word) < 3 else value
    else:
        number = value
    if type(number) is int and MOST_URGENT <= number <= LEAST_URGENT:
        return number
    raise InvalidInput(
        f"{str(value)[:40]!r} is not a priority",
        field="priority",
        hint="use 1 (most urgent) to 10, or critical, high, normal, low",
    )


def check_tier_weight(weight: float, *, tier: str) -> float:
    """`weight` as it is, if ranks can be counted with it."""
    if math.isfinite(weight) and TIER_WEIGHT_MIN <= weight <= TIER_WEIGHT_MAX:
        return float(weight)
    raise InvalidInput(
        f"{weight} is not a weight",
        field=f"tiers.{tier}.weight",
        hint=f"use a number from {TIER_WEIGHT_MIN:g} to {TIER_WEIGHT_MAX:g}; a free tenant has 1",
    )
