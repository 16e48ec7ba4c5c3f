"""Whose turn it is to fire what is overdue: a rule for one shard, from one look to the next.

A shard without an owner is anybody's. One with an owner is left to it while it makes progress, that
is while in some shard of its the oldest overdue job is gone at the next look. If all stand still,
the shard is swept, and without a second look for some seconds more. What is overdue for long is
taken whoever the owner is.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

STILL_FOR: Final = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Watched:
    """What the last look has shown: the oldest overdue job, and until when no more is waited."""

    head: Hashable | None = None
    still_until: datetime | None = None

    def is_still(self, now: datetime) -> bool:
        return self.still_until is not None and now < self.still_until


@dataclass(frozen=True, slots=True)
class Verdict:
    """`fire` what nobody is at; `take` what is overdue for long, also from under a lock."""

    fire: bool
    take: bool
    watched: Watched


def judge(
    head: Hashable, before: Watched | None, now: datetime, *, owned: bool, progress: bool
) -> Verdict:
    """`before` is None at a first look, at the start or after an outage, when all are behind.
    `progress`: the owner is at work, here or in another of its shards."""
    stands = before is not None and before.head == head and not progress
    if not owned or stands or (before is not None and before.is_still(now)):
        return Verdict(fire=True, take=True, watched=Watched(head, now + STILL_FOR))
    return Verdict(fire=False, take=before is not None, watched=Watched(head))


def moved(before: Mapping[int, Watched], heads: Mapping[int, Hashable]) -> set[int]:
    """The shards whose oldest overdue job is gone, and not by our hands: we have not swept them."""
    return {
        shard
        for shard, watched in before.items()
        if watched.head is not None
        and watched.still_until is None
        and heads.get(shard) != watched.head
    }


def quiet(before: Watched, now: datetime) -> Watched | None:
    """Nothing is overdue any more; None when there is nothing to remember either."""
    return Watched(None, before.still_until) if before.is_still(now) else None
