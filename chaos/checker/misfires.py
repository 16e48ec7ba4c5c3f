"""What a job's misfire policy does when instants are late.

All that one fire made of a job carries the same moment: that is a settlement. By when exactly it
decided is not known, only that it was between its newest instant and that moment; so what is
checked holds for every time in between.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from chaos.checker import words
from chaos.checker.history import CLOCKS, DATABASE, History
from chaos.checker.owed import RECURRING
from chaos.checker.verdict import Findings
from chaos.facts import Row
from chaos.oracle import CannotTell, instants

_LATE: Final = timedelta(seconds=5)
_SKIPPED_AFTER: Final = timedelta(seconds=60)
# Between the time by which a fire decided and the time it wrote: its locks and its statement.
_UNDER_WAY: Final = timedelta(seconds=6)
# Others take over within 3 s, and what is under 5 s late is no misfire. On a busy machine of two
# cores, three nodes of which had just been killed, 9 s have been seen; a third more is allowed.
_LATE_BY_ITSELF: Final = timedelta(seconds=12)
_LEFT_OUT: Final = frozenset({"MISFIRE", "PAUSED"})
# So many of a job fire at once; the others follow as a settlement of their own.
_AT_ONCE: Final = 1000


def check_misfires(history: History, findings: Findings) -> None:
    for settlement in _settlements(history):
        try:
            titles = [*_wrong(settlement), *_wrong_without_cause(history, settlement)]
        except CannotTell:  # where the windows of its jitter end
            continue
        findings.saw()
        for title in titles:
            said = {name: value for name, value in settlement.schedule.items() if value is not None}
            records = [*map(words.execution, settlement.fires), *map(words.skip, settlement.skips)]
            findings.violate(title, [f"schedule {said}", *records])


@dataclass(slots=True)
class Settlement:
    """What one fire made of the due instants of a recurring job."""

    job_id: UUID
    schedule: Row
    moment: datetime
    fires: list[Row] = field(default_factory=list)
    skips: list[Row] = field(default_factory=list)

    @property
    def missed(self) -> list[Row]:
        return [row for row in self.skips if row["reason"] == "MISFIRE"]

    def window(self, at: datetime) -> timedelta:
        """How far the jitter moves this instant at most: not beyond the next one."""
        jitter = timedelta(seconds=self.schedule.get("jitter_seconds") or 0)
        if not jitter:
            return jitter
        if self.schedule["type"] == "INTERVAL":
            return min(jitter, timedelta(seconds=self.schedule["interval_seconds"]))
        following = instants(self.schedule, at, at, at + jitter)
        return min([jitter, *(next_one - at for next_one in following[:1])])

    def lateness(self, at: datetime) -> timedelta:
        """How late an instant was, counted from the end of its window."""
        return self.moment - at - self.window(at)

    @property
    def grace(self) -> timedelta | None:
        seconds = self.schedule.get("misfire_grace_seconds")
        return None if seconds is None else timedelta(seconds=seconds)

    def is_past_grace(self, row: Row) -> bool:
        """Whether the job's own grace is reason enough to skip it."""
        return self.grace is not None and self.lateness(row["to_instant"]) > self.grace

    @property
    def wanted(self) -> list[datetime]:
        """What the misfire policy let fire; the overlap policy may have skipped it then."""
        fired = [row["scheduled_time"] for row in self.fires]
        return sorted(fired + [s["from_instant"] for s in self.skips if s["reason"] == "OVERLAP"])


def _settlements(history: History) -> Iterator[Settlement]:
    found: dict[tuple[UUID, datetime], Settlement] = {}
    for row in history.known.values():
        if row["trigger"] == "SCHEDULE" and row.get("created_at") is not None:
            schedule = history.policy(row).get("schedule") or {}
            key = (row["job_id"], row["created_at"])
            found.setdefault(key, Settlement(key[0], schedule, key[1])).fires.append(row)
    schedules = {
        (row["job_id"], row["schedule_version"]): row["definition"]["schedule"]
        for row in history.facts.job_versions
    }
    for row in history.facts.skips:
        schedule = schedules.get((row["job_id"], row["schedule_version"]), {})
        key = (row["job_id"], row["recorded_at"])
        found.setdefault(key, Settlement(key[0], schedule, key[1])).skips.append(row)
    for settlement in found.values():
        schedule = settlement.schedule
        if schedule.get("type") in RECURRING and schedule.get("max_runs") is None:
            yield settlement


def _wrong(settlement: Settlement) -> Iterator[str]:
    schedule, wanted, missed = settlement.schedule, settlement.wanted, settlement.missed
    grace = settlement.grace
    for row in missed:
        oldest = min(one["from_instant"] for one in settlement.skips)
        if settlement.lateness(oldest) <= _LATE and not settlement.is_past_grace(row):
            late = _LATE + settlement.window(oldest)
            yield f"skipped as a misfire though at most {late.total_seconds():g} s late"
    if missed and wanted and wanted[0] < max(row["to_instant"] for row in missed):
        yield "an older instant fired while a newer one was skipped as a misfire"
    for at in wanted:
        if grace is not None and settlement.lateness(at) > grace + _UNDER_WAY:
            yield f"it fired though later than its grace of {schedule['misfire_grace_seconds']} s"
    acted = bool(wanted) and wanted[-1] - wanted[0] > _LATE + settlement.window(wanted[0])
    yield from _wrong_by_policy(settlement, acted=acted, graceful=grace is not None)


def _wrong_without_cause(history: History, settlement: Settlement) -> Iterator[str]:
    """Nothing is so late by itself. Whoever makes, edits or resumes a job settles what was due
    before: a change of the job in that time is a cause as well."""
    for row in settlement.missed:
        oldest, moment = row["from_instant"], settlement.moment
        if settlement.lateness(oldest) <= _LATE_BY_ITSELF or settlement.is_past_grace(row):
            continue
        changed = any(
            oldest - CLOCKS <= version["valid_from"] <= moment + CLOCKS
            for version in history.versions.get(settlement.job_id, ())
        )
        if not changed and history.was_spared(oldest, moment, DATABASE):
            yield "skipped as a misfire though nothing had struck the database"


def _wrong_by_policy(settlement: Settlement, *, acted: bool, graceful: bool) -> Iterator[str]:
    """`acted`: the fires alone lie so far apart that the policy must have acted on them."""
    schedule, wanted = settlement.schedule, settlement.wanted
    policy = schedule.get("misfire_policy") or "FIRE_ONCE"
    if policy == "SKIP":
        for at in wanted:
            if settlement.lateness(at) > _SKIPPED_AFTER + _UNDER_WAY:
                yield "it fired more than a minute late under SKIP"
        for row in settlement.missed:
            if not graceful and settlement.lateness(row["to_instant"]) <= _SKIPPED_AFTER:
                yield "skipped under SKIP though at most a minute late"
        return
    most = 1 if policy == "FIRE_ONCE" else schedule.get("misfire_max_runs") or 100
    left_out = any(row["reason"] in _LEFT_OUT for row in settlement.skips)
    if (left_out or acted) and len(wanted) > most:
        yield f"{len(wanted)} fired after an outage under {policy}, at most {most} may"
    if settlement.missed and not graceful and len(wanted) < min(most, _AT_ONCE):
        yield f"{len(wanted)} fired after an outage under {policy}, {most} must"
