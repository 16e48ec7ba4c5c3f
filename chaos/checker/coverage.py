"""No shard stays without an owner while a scheduler could have taken it.

A scheduler holds no more than its share among those that live. Whoever was killed lives, for the
others, until its lease has run out: while schedulers die one after another, the shares of those
that are well do not add up to all shards, and some rightly wait. But whatever single ones suffer,
one that was left alone and has room takes what is free. Only trouble of the database excuses it.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final
from uuid import UUID

from chaos.checker import words
from chaos.checker.history import RECOVERY, History
from chaos.checker.leases import LEASE, SHARDS, by_shard
from chaos.checker.verdict import Findings
from chaos.facts import Change, Fault

# A lease runs out after ten seconds; who takes over has watched for as long, and looks each second.
COVERED_WITHIN: Final = timedelta(seconds=10 + 10 + 3)
# It looks each second; over a slow network (0.4 s there and back) a pass takes up to 4 s. A busy
# machine that lets it stand still for 5 s makes it watch anew for 10 s: once, not again and again.
TAKEN_WITHIN: Final = timedelta(seconds=10 + 5)
# In 40 min with half as many faults more than usual, 35 s was the longest of 9,975 such times, with
# outages of the database: what takes so much longer is lost, whatever happened.
LOST_AFTER: Final = timedelta(minutes=2)
_SCHEDULER: Final = "scheduler"
_START: Final = "clock off"  # noted at each start of a node, whether or not its clock is right
_DEATHS: Final = frozenset({"kill scheduler", "end scheduler"})
# The last renewal of the dead may have come a moment after the fault was noted.
_SLACK: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Gap:
    """From when to when nobody held a shard, after it was first taken, and what began that."""

    low: datetime
    high: datetime
    cause: Change
    is_last: bool = False  # at the end of the run it still had no owner


@dataclass(frozen=True, slots=True)
class Life:
    """Of a scheduler, from one start to its end; None if it lived on."""

    node: str
    began: datetime
    ended: datetime | None


def check_shards_covered(history: History, findings: Findings) -> None:
    """What is looked at: each change of hands while somebody was there who had to bring it about,
    and at the end each shard that has an owner or has lost it just now."""
    facts = history.facts
    # At the end the nodes are stopped, and give back what they hold.
    until = facts.samples[-1].at if facts.samples else facts.read_at
    fleet = Fleet(history)
    for shard, changes in fleet.shards.items():
        open_for = timedelta()
        for gap in _gaps(changes, until):
            if gap.is_last:
                open_for = gap.high - gap.low
            else:
                findings.saw(fleet.left_alone(gap.high) > 0)
            title = _wrong(history, fleet, gap)
            if title is not None:
                findings.violate(f"shard {shard}: {title}", [words.change(gap.cause)])
        findings.saw(open_for <= COVERED_WITHIN)


def _wrong(history: History, fleet: "Fleet", gap: Gap) -> str | None:
    title = f"nobody had it for {(gap.high - gap.low).total_seconds():.1f} s"
    # Where nobody is struck, all are well by the end of a recovery, and their shares add up.
    calm = history.longest_calm(gap.low, gap.high, _SCHEDULER)
    if calm > TAKEN_WITHIN or gap.high - gap.low > LOST_AFTER:
        return title
    moment = gap.low + TAKEN_WITHIN
    while moment < gap.high:
        if fleet.has_room(moment):
            return f"{title}, and a scheduler that nothing had struck had room"
        moment += TAKEN_WITHIN / 4
    return None


class Fleet:
    """The schedulers of a run, by their starts, their faults and what they held."""

    def __init__(self, history: History) -> None:
        self.shards = by_shard(history)
        self._history = history
        self._lives = list(_lives(history))

    def left_alone(self, moment: datetime) -> int:
        """How many have been at work for long, and untouched up to now for as long as it takes to
        take a shard: neither they nor the database."""
        low = moment - TAKEN_WITHIN
        return sum(
            life.began + RECOVERY <= low
            and (life.ended is None or life.ended > moment)
            and self._history.was_spared(low, moment, life.node)
            for life in self._lives
        )

    def has_room(self, moment: datetime) -> bool:
        """Whether one of these holds less than its share, as it was at the least. Who is who need
        not be known: fewer hold so much than there are who should."""
        alone = self.left_alone(moment)
        if not alone:
            return False
        gone = moment - TAKEN_WITHIN - LEASE - _SLACK
        alive = sum(
            life.began <= moment and (life.ended is None or life.ended >= gone)
            for life in self._lives
        )
        share = -(-SHARDS // alive)
        return sum(count >= share for count in self._held(moment).values()) < alone

    def _held(self, moment: datetime) -> Counter[UUID]:
        """By owner, how many shards were its own then."""
        held: Counter[UUID] = Counter()
        for changes in self.shards.values():
            place = bisect_right(changes, moment, key=lambda change: change.committed_at)
            row = changes[place - 1].new if place else None
            if row is not None and row["owner"] is not None and row["expires_at"] > moment:
                held[row["owner"]] += 1
        return held


def _lives(history: History) -> Iterator[Life]:
    """One that ended unseen was over when the node was started again."""
    starts: dict[str, list[datetime]] = defaultdict(list)
    for fault in history.facts.faults:
        if fault.kind == _START and fault.victim.startswith(_SCHEDULER):
            starts[fault.victim].append(history.at(fault.began))
    for node, began in starts.items():
        deaths = [history.at(one.healed) for one in _deaths(history, node)]
        for start, following in pairwise([*sorted(began), None]):
            if start is not None:
                ends = [end for end in deaths if start < end and (not following or end < following)]
                yield Life(node, start, min(ends, default=following))


def _deaths(history: History, node: str) -> Iterator[Fault]:
    return (one for one in history.faults if one.victim == node and one.kind in _DEATHS)


def _gaps(changes: list[Change], until: datetime) -> Iterator[Gap]:
    free_from: datetime | None = None
    cause: Change | None = None
    for change in changes:
        at, new = change.committed_at, change.new
        if free_from is not None and cause is not None and free_from < min(at, until):
            yield Gap(free_from, min(at, until), cause, is_last=at > until)
        if at > until:
            return
        held = new is not None and new["owner"] is not None
        free_from = new["expires_at"] if held and new is not None else at
        cause = change
    if free_from is not None and cause is not None and until > free_from:
        yield Gap(free_from, until, cause, is_last=True)
