"""A paused queue: nothing of it is claimed from the commit of the pause to that of the resume, and
a pause that was acknowledged has happened.

Pauses and claims of one queue come one after another, so their commits are in order: there is no
moment in between that would have to be allowed for.
"""

from bisect import bisect_left
from collections import defaultdict
from datetime import datetime
from itertools import pairwise
from typing import Final

from chaos.checker import words
from chaos.checker.history import CLOCKS, History, either
from chaos.checker.verdict import Findings
from chaos.facts import Change

_WANTED: Final = {"pause queue": True, "resume queue": False}


def check_pauses_hold(history: History, findings: Findings) -> None:
    changes = by_queue(history)
    claims = _claims(history, changes)
    for queue, found in changes.items():
        times = [claim.committed_at for claim in claims[queue]]
        for change, following in pairwise([*found, None]):
            if change is None or not is_paused(change):
                continue
            findings.saw(not _was_paused(change))
            end = history.facts.read_at if following is None else following.committed_at
            low, high = bisect_left(times, change.committed_at), bisect_left(times, end)
            for claim in claims[queue][low:high]:
                title = f"claimed from {queue}, which was paused"
                findings.violate(title, [words.queue(change), words.change(claim)])
    _check_acknowledged(history, changes, findings)


def by_queue(history: History) -> dict[str, list[Change]]:
    """The changes of each queue, in order."""
    found: dict[str, list[Change]] = defaultdict(list)
    for change in sorted(history.facts.queue_changes, key=lambda one: one.number):
        found[either(change)["name"]].append(change)
    return found


def is_paused(change: Change) -> bool:
    return change.new is not None and change.new["paused_at"] is not None


def _was_paused(change: Change) -> bool:
    return change.old is not None and change.old["paused_at"] is not None


def _claims(history: History, changes: dict[str, list[Change]]) -> dict[str, list[Change]]:
    """Of each queue that was ever changed, in the order of their commits."""
    found: dict[str, list[Change]] = {queue: [] for queue in changes}
    for holds in history.holds.values():
        for hold in holds:
            if hold.claim["queue"] in found:
                found[hold.claim["queue"]].append(hold.claimed)
    for claims in found.values():
        claims.sort(key=lambda claim: claim.committed_at)
    return found


def _check_acknowledged(
    history: History, changes: dict[str, list[Change]], findings: Findings
) -> None:
    """Between the question, sent for the first time, and its answer it was so at some moment."""
    for exchange in history.facts.exchanges:
        if exchange.action not in _WANTED:
            continue
        if exchange.answered is None or not exchange.is_done:
            continue
        findings.saw(_WANTED[exchange.action])
        low, high = history.asked_at(exchange) - CLOCKS, history.at(exchange.answered) + CLOCKS
        known = changes.get(exchange.body["queue"], [])
        if not _was_so(known, low, high, paused=_WANTED[exchange.action]):
            title = f"an acknowledged {exchange.action} that nothing tells of"
            shown = map(words.queue, known[-6:])
            findings.violate(title, [words.exchange(exchange), *shown])


def _was_so(known: list[Change], low: datetime, high: datetime, *, paused: bool) -> bool:
    """Before its first change a queue is not paused."""
    if not paused and (not known or known[0].committed_at >= low):
        return True
    return any(
        is_paused(change) is paused
        and change.committed_at <= high
        and (following is None or following.committed_at >= low)
        for change, following in pairwise([*known, None])
        if change is not None
    )
