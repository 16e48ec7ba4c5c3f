"""Who holds which shard, read from every change of a lease: epochs rise, nobody takes what is held,
and nobody writes after its death."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from chaos.checker import words
from chaos.checker.history import History
from chaos.checker.verdict import Findings
from chaos.facts import Change, Fault, Row

SHARDS: Final = 64
LEASE: Final = timedelta(seconds=10)
# A statement that a node sent before its death may still be carried out: the server ends it then.
_LAST_STATEMENT: Final = timedelta(seconds=6)
_NOBODY: Final = UUID(int=0)
# Over before a lease can run out.
_BRIEF: Final = frozenset({"reset", "lose commit"})
_FORGOTTEN: Final = timedelta(seconds=30)


def by_shard(history: History) -> dict[int, list[Change]]:
    found: dict[int, list[Change]] = defaultdict(list)
    for change in sorted(history.facts.lease_changes, key=lambda one: one.number):
        row = change.old if change.new is None else change.new
        if row is not None:
            found[row["shard"]].append(change)
    return found


def check_epochs_rise(history: History, findings: Findings) -> None:
    for shard, changes in by_shard(history).items():
        owners: dict[int, tuple[UUID, Change]] = {}
        for change in changes:
            old, new = change.old, change.new
            if old is None or new is None:
                findings.violate(f"the lease of shard {shard} came or went", [words.change(change)])
                continue
            for title in _wrong_epoch(old, new):
                findings.violate(f"shard {shard}: {title}", [words.change(change)])
            if new["owner"] is not None:
                findings.saw(old["owner"] != new["owner"])
                owner, first = owners.setdefault(new["epoch"], (new["owner"], change))
                if owner != new["owner"]:
                    title = f"shard {shard}: epoch {new['epoch']} has two owners"
                    findings.violate(title, [words.change(first), words.change(change)])


def _wrong_epoch(old: Row, new: Row) -> Iterator[str]:
    if new["epoch"] < old["epoch"]:
        yield f"its epoch fell from {old['epoch']} to {new['epoch']}"
    changes_hands = new["owner"] is not None and new["owner"] != old["owner"]
    if changes_hands and new["epoch"] <= old["epoch"]:
        yield "it has a new owner under the old epoch"
    if not changes_hands and new["epoch"] != old["epoch"] and new["owner"] is not None:
        yield "its epoch rose under the same owner"


def check_stale_lease_refused(history: History, findings: Findings) -> None:
    killed = _deaths(history)
    for shard, changes in by_shard(history).items():
        for change in changes:
            old, new = change.old, change.new
            if old is None or new is None:
                continue
            findings.saw()
            for title in _wrong_write(old, new, change.committed_at):
                findings.violate(f"shard {shard}: {title}", [words.change(change)])
            if _is_takeover(old, new) and not _was_struck(
                history, old["owner"], change.committed_at
            ):
                title = f"shard {shard}: taken from a scheduler that nothing had struck"
                findings.violate(title, [words.change(change)])
            fault = killed.get(new["owner"] or _NOBODY)
            sent = history.earlier(change.committed_at, _LAST_STATEMENT)
            if fault is not None and sent > history.at(fault.began):
                title = f"shard {shard}: written for a scheduler that was dead"
                findings.violate(title, [words.fault(fault), words.change(change)])


def _is_takeover(old: Row, new: Row) -> bool:
    return old["owner"] is not None and new["owner"] not in (None, old["owner"])


def _was_struck(history: History, owner: UUID, at: datetime) -> bool:
    """After an outage of the database everybody keeps what they had: who lost a lease was killed,
    frozen or cut off. A node that could not say who it was may have been any."""
    for fault in history.faults:
        if not fault.victim.startswith("scheduler") or history.at(fault.began) > at:
            continue
        told = fault.detail.get("id")
        if told == str(owner):
            return True
        if not told and fault.kind not in _BRIEF and at < history.at(fault.healed) + _FORGOTTEN:
            return True
    return False


def _wrong_write(old: Row, new: Row, committed_at: datetime) -> Iterator[str]:
    """Taken while somebody held it, or renewed to end earlier or later than a lease may."""
    if _is_takeover(old, new):
        if old["expires_at"] > committed_at:
            yield "it was taken while its lease had not run out"
    elif old["owner"] is not None and new["owner"] == old["owner"]:
        if new["expires_at"] < old["expires_at"]:
            yield "a renewal made it end earlier"
        if new["epoch"] != old["epoch"]:
            yield "a renewal changed its epoch"
    if new["expires_at"] is not None and new["expires_at"] > committed_at + LEASE:
        yield "it ends later than a lease after its commit"


def _deaths(history: History) -> dict[UUID, Fault]:
    """Schedulers that were killed, by the id that they had in that life."""
    return {
        UUID(str(fault.detail["id"])): fault
        for fault in history.facts.faults
        if fault.kind == "kill scheduler" and fault.detail.get("id")
    }
