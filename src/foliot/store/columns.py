"""A batch as the arrays of one call, as small as it can be: each array costs the client 0.2 to 1 ms
for a thousand rows, so what is the same for all of them is not sent a thousand times."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def sparse(values: Sequence[T | None]) -> Sequence[T | None] | None:
    """Null instead of an array of nulls: `unnest` pads the shorter of its arrays with them."""
    return None if values.count(None) == len(values) else values


def unless(value: T, usual: T) -> T | None:
    """Null where the value is as it usually is."""
    return None if value == usual else value
