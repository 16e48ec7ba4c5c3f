"""What a run says about time: how late instants were, how long a killed node kept others waiting.

Each measure is a list of seconds. A kill that a database outage overlaps is told apart: then
nobody could take over, and rescuers wait for a whole expiry by design.
"""

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Final
from uuid import UUID

from chaos.checker.history import History, Hold
from chaos.checker.leases import LEASE, by_shard
from chaos.checker.pauses import by_queue, is_paused
from chaos.facts import LONG_OUTAGE, STALL, Fault, Row

OUTAGES: Final = frozenset({"restart database", "kill backend", STALL, "lock table", LONG_OUTAGE})
# What is taken from the dead is taken after 16.5 s at the latest, if nothing comes between.
_BEFORE: Final = timedelta(seconds=17)
_AFTER: Final = timedelta(seconds=20)


@dataclass(slots=True)
class Recovery:
    """How many kills there were, and the seconds that each thing took; those of kills beside a
    database outage are apart."""

    kills: int = 0
    plain: list[float] = field(default_factory=list)
    kills_in_outage: int = 0
    in_outage: list[float] = field(default_factory=list)

    def of_kill(self, *, in_outage: bool) -> list[float]:
        """Where the seconds of one more kill go."""
        self.kills += not in_outage
        self.kills_in_outage += in_outage
        return self.in_outage if in_outage else self.plain


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of all does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]


def lateness(history: History) -> list[float]:
    """From when a scheduled execution was due to when it was there."""
    return [
        (row["created_at"] - _due_at(row)).total_seconds()
        for row in history.known.values()
        if _came_in_time(history, row)
    ]


def _came_in_time(history: History, row: Row) -> bool:
    """Whether its job could fire when it was due: not what a resumed job makes up for, nor what was
    past when the job was made."""
    if row["trigger"] != "SCHEDULE" or row.get("created_at") is None:
        return False
    version = history.version(row["job_id"], row["job_version"])
    return version is not None and bool(_due_at(row) >= version["valid_from"])


def _due_at(row: Row) -> datetime:
    """What a change of its job has settled is available since the change."""
    settled = row["available_at"] == row["created_at"]
    due: datetime = row["scheduled_time"] if settled else row["available_at"]
    return due


def waits(history: History) -> list[float]:
    """From when a claim could have had it to the claim; not in queues that were paused."""
    gated = _gated(history)
    return [
        (hold.claim["claimed_at"] - hold.claim["queued_at"]).total_seconds()
        for holds in history.holds.values()
        for hold in holds
        if hold.claim["queued_at"] is not None and hold.claim["queue"] not in gated
    ]


def _gated(history: History) -> set[str]:
    return {name for name, changes in by_queue(history).items() if any(map(is_paused, changes))}


def starts(history: History) -> list[float]:
    """From a claim to the handler's beginning."""
    return [
        (row["started_at"] - row["claimed_at"]).total_seconds()
        for row in history.facts.attempts
        if row["started_at"] is not None and row["claimed_at"] is not None
    ]


def failovers(history: History) -> Recovery:
    """Of the instants of a killed scheduler's shards that came within a lease of its death: from
    the kill or the instant, whichever is later, to the execution."""
    found = Recovery()
    fires = _fires_by_shard(history)
    for fault in history.facts.faults:
        if fault.kind == "kill scheduler":
            shards = _shards(history, fault)
            killed = history.at(fault.began)
            seconds = found.of_kill(in_outage=_in_outage(history, fault))
            for shard in shards:
                rows = fires.get(shard, [])
                # However late it came: the longest are what is wanted.
                for row in rows[bisect_left(rows, killed, key=_created) :]:
                    if _due_at(row) <= killed + LEASE:
                        due = max(killed, _due_at(row))
                        seconds.append((row["created_at"] - due).total_seconds())
    return found


def _fires_by_shard(history: History) -> dict[int, list[Row]]:
    fires: dict[int, list[Row]] = defaultdict(list)
    for row in history.known.values():
        job = history.jobs.get(row["job_id"])
        if job is not None and _came_in_time(history, row):
            fires[job["shard"]].append(row)
    for rows in fires.values():
        rows.sort(key=_created)
    return fires


def _created(row: Row) -> datetime:
    created: datetime = row["created_at"]
    return created


def _shards(history: History, fault: Fault) -> list[int]:
    """What it held, by its own account or, where nobody asked it, by the leases."""
    if fault.detail.get("shards"):
        return list(fault.detail["shards"])
    if not fault.detail.get("id"):
        return []
    node, killed = UUID(str(fault.detail["id"])), history.at(fault.began)
    held = []
    for shard, changes in by_shard(history).items():
        before = [one for one in changes if one.committed_at <= killed]
        if before and before[-1].new is not None and before[-1].new["owner"] == node:
            held.append(shard)
    return held


def _in_outage(history: History, fault: Fault) -> bool:
    at = history.at(fault.began)
    return any(
        history.at(one.began) - _BEFORE <= at <= history.at(one.healed) + _AFTER
        for one in history.facts.faults
        if one.kind in OUTAGES
    )


def orphan_recoveries(history: History) -> Recovery:
    """Of what a killed worker held: from the kill to the next claim, by anybody. What is under a
    limit or in a queue that was paused has to wait besides, and is left out."""
    found = Recovery()
    held_by = _taken(history)
    limited = {row["name"] for row in history.facts.queues if row["concurrency_limit"] is not None}
    limited |= _gated(history)
    for fault in _killed_workers(history):
        killed = history.at(fault.began)
        seconds = found.of_kill(in_outage=_in_outage(history, fault))
        for hold, following in held_by.get(UUID(str(fault.detail["id"])), ()):
            row = hold.claim
            free = not row["limit_keys"] and row["queue"] not in limited
            if free and following is not None and _ended_after(hold, killed):
                again: datetime = following.claim["claimed_at"]
                seconds.append((again - killed).total_seconds())
    return found


def takings(history: History) -> Recovery:
    """The same from the kill until it was taken out of the dead hands."""
    found = Recovery()
    held_by = _taken(history)
    for fault in _killed_workers(history):
        killed = history.at(fault.began)
        seconds = found.of_kill(in_outage=_in_outage(history, fault))
        for hold, _ in held_by.get(UUID(str(fault.detail["id"])), ()):
            if hold.ended is not None and _ended_after(hold, killed):
                seconds.append((hold.ended.committed_at - killed).total_seconds())
    return found


def _killed_workers(history: History) -> Iterator[Fault]:
    for fault in history.facts.faults:
        if fault.kind in ("kill worker", "kill worker group") and fault.detail.get("id"):
            yield fault


def _taken(history: History) -> dict[UUID, list[tuple[Hold, Hold | None]]]:
    """By worker, what was taken from it, each with the claim that followed."""
    found: dict[UUID, list[tuple[Hold, Hold | None]]] = defaultdict(list)
    for holds in history.holds.values():
        for hold, following in zip_longest(holds, holds[1:]):
            if history.was_taken(hold):
                found[hold.worker_id].append((hold, following))
    return found


def _ended_after(hold: Hold, killed: datetime) -> bool:
    """What its worker wrote with its last breath is no orphan."""
    return hold.ended is not None and hold.ended.committed_at > killed
