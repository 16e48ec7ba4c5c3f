"""What ran beside what, and how much began within a time: told from history by a sweep over it."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import asyncpg

Span = tuple[datetime, datetime]


def most_at_once(spans: Sequence[Span]) -> int:
    steps = sorted([(end, -1) for _, end in spans] + [(start, 1) for start, _ in spans])
    now = most = 0
    for _, step in steps:
        now += step
        most = max(most, now)
    return most


def most_within(starts: Sequence[asyncpg.Record], period: timedelta) -> int:
    """The most starts in any window of this length, without the moment at its end; of rows of
    `rate_starts`."""
    found: list[tuple[datetime, int]] = [(row["at"], row["started"]) for row in starts]
    return max(
        sum(started for at, started in found if first <= at < first + period) for first, _ in found
    )
