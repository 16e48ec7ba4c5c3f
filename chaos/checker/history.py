"""The facts in the orders in which they are looked up, sorted once for all checks."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final
from uuid import UUID

from chaos.facts import Change, Effect, Exchange, Facts, Fault, Row

# What harms nobody by itself: a node starts with a clock that is off.
HARMLESS: Final = frozenset({"clock off"})
# What strikes the database and should slow nobody, so that it is no excuse: dead rows are kept.
FELT_BY_NOBODY: Final = frozenset({"pin snapshot"})
# No node is called like this: the victims whose faults are those of the database alone.
DATABASE: Final = "database"
# Nodes are started again, rescuers watch for a whole expiry (15 s), then everything is as usual.
RECOVERY: Final = timedelta(seconds=25)
# The machine's clock and the database's are brought together to within this.
CLOCKS: Final = timedelta(seconds=0.25)
# How a hold ends that another ends.
TAKEN_BY: Final = frozenset({"LOSE", "HAND_BACK"})
# After fifteen seconds a worker is dead; a rescuer decides by a time it read a little earlier.
_SILENT: Final = timedelta(seconds=14)


@dataclass(slots=True)
class Hold:
    """A claim, and the change that took the execution out of the worker's hands, if any has.

    `event` is how: END (it is over), RETRY, LOSE, HAND_BACK, SNOOZE or HOLD; None while it runs.
    """

    claimed: Change
    claim: Row
    ended: Change | None = None
    event: str | None = None

    @property
    def fence(self) -> int:
        fence: int = self.claim["fence"]
        return fence

    @property
    def worker_id(self) -> UUID:
        worker_id: UUID = self.claim["worker_id"]
        return worker_id


class History:
    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.jobs: dict[UUID, Row] = {row["id"]: row for row in facts.jobs}
        self.live: dict[UUID, Row] = {row["id"]: row for row in facts.executions}
        self._trouble: dict[str, list[tuple[datetime, datetime]]] = {}

    def at(self, monotonic: float) -> datetime:
        """The database's time at a moment of the machine's own clock."""
        return self.facts.calm_at + timedelta(seconds=monotonic - self.facts.calm)

    def asked_at(self, exchange: Exchange) -> datetime:
        """When it was sent for the first time: with one key it is one request."""
        first = exchange.sent
        if exchange.key is not None:
            first = self._first_sent[exchange.action, exchange.key]
        return self.at(first)

    @cached_property
    def _first_sent(self) -> dict[tuple[str, str], float]:
        first: dict[tuple[str, str], float] = {}
        for one in self.facts.exchanges:
            if one.key is not None:
                known = first.setdefault((one.action, one.key), one.sent)
                first[one.action, one.key] = min(known, one.sent)
        return first

    def earlier(self, at: datetime, by: timedelta) -> datetime:
        """Before `at` by so much of the database's working time: while it stood still, whatever was
        under way took longer."""
        low = at - by
        for began, healed in reversed(self._stalls):
            if began < at and low < healed:
                low -= min(at, healed) - began
        return low

    @cached_property
    def _stalls(self) -> list[tuple[datetime, datetime]]:
        return [
            (self.at(fault.began), self.at(fault.healed)) for fault in self.faults if fault.is_stall
        ]

    def faults_of(self, node: str, low: datetime, high: datetime) -> Iterator[Fault]:
        """Those that struck it at some moment between these."""
        for fault in self.faults:
            is_within = self.at(fault.began) <= high and low <= self.at(fault.healed)
            if fault.victim == node and is_within:
                yield fault

    @cached_property
    def versions(self) -> dict[UUID, list[Row]]:
        """Of each job, in order."""
        return _grouped(sorted(self.facts.job_versions, key=lambda row: row["version"]), "job_id")

    @cached_property
    def skips(self) -> dict[UUID, list[Row]]:
        rows = sorted(self.facts.skips, key=lambda row: row["from_instant"])
        return _grouped(rows, "job_id")

    @cached_property
    def attempts(self) -> dict[UUID, list[Row]]:
        """Of each execution, in the order in which they ended."""
        rows = sorted(self.facts.attempts, key=lambda row: (row["finished_at"], row["fence"]))
        return _grouped(rows, "id")

    @cached_property
    def finals(self) -> dict[UUID, Row]:
        """The outcome of each execution that is over."""
        return {row["id"]: row for row in self.facts.attempts if row["final"]}

    @cached_property
    def changes(self) -> dict[UUID, list[Change]]:
        """Of each execution, in order."""
        found: dict[UUID, list[Change]] = defaultdict(list)
        for change in sorted(self.facts.execution_changes, key=lambda one: one.number):
            found[either(change)["id"]].append(change)
        return dict(found)

    @cached_property
    def effects(self) -> dict[UUID, list[Effect]]:
        """Of each execution, in the order of the sink."""
        found: dict[UUID, list[Effect]] = defaultdict(list)
        for effect in sorted(self.facts.effects, key=lambda one: one.number):
            found[effect.execution_id].append(effect)
        return dict(found)

    @cached_property
    def holds(self) -> dict[UUID, list[Hold]]:
        """Of each execution that was ever claimed, in order."""
        found = ((id_, list(_holds(changes))) for id_, changes in self.changes.items())
        return {id_: holds for id_, holds in found if holds}

    @cached_property
    def known(self) -> dict[UUID, Row]:
        """Every execution there ever was, by the first row that tells of it."""
        known: dict[UUID, Row] = {}
        for id_, changes in self.changes.items():
            known[id_] = changes[0].new or changes[0].old or {}
        for row in (*self.facts.executions, *self.facts.attempts):
            known.setdefault(row["id"], row)
        return known

    def version(self, job_id: UUID, number: int) -> Row | None:
        """The version of a job with this number; versions are numbered from 1 without a gap."""
        versions = self.versions.get(job_id, [])
        if 0 < number <= len(versions) and versions[number - 1]["version"] == number:
            return versions[number - 1]
        return next((row for row in versions if row["version"] == number), None)

    def policy(self, row: Row) -> Row:
        """What an execution's version says of it."""
        found = self.version(row["job_id"], row["job_version"])
        definition: Row = {} if found is None else found["definition"]
        return definition

    @cached_property
    def faults(self) -> list[Fault]:
        harmful = (one for one in self.facts.faults if one.kind not in HARMLESS)
        return sorted(harmful, key=lambda one: one.began)

    def was_spared(self, low: datetime, high: datetime, victims: str = "") -> bool:
        """Whether, from `low` to `high`, nothing had struck the database or a node whose name
        begins like this, nor was recovering from it."""
        spans = self._troubles(victims)
        place = bisect_left(spans, low, key=lambda span: span[1])
        return place == len(spans) or spans[place][0] > high

    def longest_calm(self, low: datetime, high: datetime, victims: str) -> timedelta:
        """The longest stretch from `low` to `high` in which such victims were spared."""
        spans = self._troubles(victims)
        longest, calm_from = timedelta(), low
        for began, over in spans[bisect_left(spans, low, key=lambda span: span[1]) :]:
            if began >= high:
                break
            longest = max(longest, began - calm_from)
            calm_from = over
        return max(longest, high - calm_from)

    def _troubles(self, victims: str) -> list[tuple[datetime, datetime]]:
        spans = self._trouble.get(victims)
        if spans is None:
            spans = self._trouble[victims] = list(self._merged(victims))
        return spans

    def _merged(self, victims: str) -> Iterator[tuple[datetime, datetime]]:
        """Stretches of time with a fault or the recovery from one, in order, none touching."""
        last: tuple[datetime, datetime] | None = None
        for fault in self.faults:
            is_other = fault.victim and not fault.victim.startswith(victims)
            if is_other or fault.kind in FELT_BY_NOBODY:
                continue
            low, high = self.at(fault.began), self.at(fault.healed) + RECOVERY
            if last is not None and low <= last[1]:
                last = (last[0], max(high, last[1]))
                continue
            if last is not None:
                yield last
            last = (low, high)
        if last is not None:
            yield last

    @cached_property
    def heard_of(self) -> dict[UUID, datetime]:
        """When a worker was last heard of."""
        return {row["id"]: row["last_heartbeat_at"] for row in self.facts.workers}

    def was_taken(self, hold: Hold) -> bool:
        """Whether a rescuer took it, from a worker that had been silent."""
        return hold.event in TAKEN_BY and self.was_silent(hold)

    def was_silent(self, hold: Hold) -> bool:
        """Whether its worker had not been heard of for so long when it ended that it was dead."""
        if hold.ended is None:
            return False
        heard = self.heard_of.get(hold.worker_id)
        return heard is None or heard < hold.ended.committed_at - _SILENT

    @cached_property
    def node_of(self) -> dict[UUID, str]:
        """The node that a worker was a life of: worker-2.5 is the fifth of worker-2."""
        return {row["id"]: row["name"].rpartition(".")[0] for row in self.facts.workers}


def either(change: Change) -> Row:
    """The row after a change; of a deletion, the row before it."""
    row = change.old if change.new is None else change.new
    if row is None:
        raise ValueError(f"change {change.number} is of no row")
    return row


def is_claim(change: Change) -> bool:
    old, new = change.old, change.new
    if new is None or new["status"] != "RUNNING":
        return False
    return old is None or old["status"] != "RUNNING" or old["fence"] != new["fence"]


def _holds(changes: Iterable[Change]) -> Iterator[Hold]:
    hold: Hold | None = None
    for change in changes:
        if is_claim(change):
            if hold is not None:
                yield hold
            hold = Hold(change, either(change))
        elif hold is not None and (change.new is None or change.new["status"] != "RUNNING"):
            hold.ended, hold.event = change, _event(change)
            yield hold
            hold = None
    if hold is not None:
        yield hold


def _event(change: Change) -> str:
    old, new = change.old or {}, change.new
    if new is None:
        return "END"
    if new["status"] == "QUEUED":
        return "LOSE" if new["attempt_number"] == old["attempt_number"] else "HAND_BACK"
    events = {"RETRYING": "RETRY", "PENDING": "SNOOZE", "WAITING": "HOLD"}
    return events.get(new["status"], str(new["status"]))


def _grouped(rows: Iterable[Row], column: str) -> dict[UUID, list[Row]]:
    found: dict[UUID, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[column]].append(row)
    return dict(found)
