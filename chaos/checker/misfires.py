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
from chaos.checker.history import History
from chaos.checker.owed import RECURRING
from chaos.checker.verdict import Findings
from chaos.facts import Row

_LATE: Final = timedelta(seconds=5)
_SKIPPED_AFTER: Final = timedelta(seconds=60)
# Between the time by which a fire decided and the time it wrote: its locks and its statement.
_UNDER_WAY: Final = timedelta(seconds=6)
_LEFT_OUT: Final = frozenset({"MISFIRE", "PAUSED"})


def check_misfires(history: History, findings: Findings) -> None:
    for settlement in _settlements(history):
        findings.saw()
        for title in _wrong(settlement):
            said = {name: value for name, value in settlement.schedule.items() if value is not None}
            records = [*map(words.execution, settlement.fires), *map(words.skip, settlement.skips)]
            findings.violate(title, [f"schedule {said}", *records])


@dataclass(slots=True)
class Settlement:
    """What one fire made of the due instants of a recurring job."""

    schedule: Row
    moment: datetime
    fires: list[Row] = field(default_factory=list)
    skips: list[Row] = field(default_factory=list)

    @property
    def missed(self) -> list[Row]:
        return [row for row in self.skips if row["reason"] == "MISFIRE"]

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
            found.setdefault(key, Settlement(schedule, key[1])).fires.append(row)
    schedules = {
        (row["job_id"], row["schedule_version"]): row["definition"]["schedule"]
        for row in history.facts.job_versions
    }
    for row in history.facts.skips:
        schedule = schedules.get((row["job_id"], row["schedule_version"]), {})
        key = (row["job_id"], row["recorded_at"])
        found.setdefault(key, Settlement(schedule, key[1])).skips.append(row)
    for settlement in found.values():
        schedule = settlement.schedule
        if schedule.get("type") in RECURRING and schedule.get("max_runs") is None:
            yield settlement


def _wrong(settlement: Settlement) -> Iterator[str]:
    schedule, wanted, missed = settlement.schedule, settlement.wanted, settlement.missed
    window = timedelta(seconds=schedule.get("jitter_seconds") or 0)
    seconds = schedule.get("misfire_grace_seconds")
    grace = None if seconds is None else timedelta(seconds=seconds) + window
    late = _LATE + window
    for row in missed:
        oldest = min(one["from_instant"] for one in settlement.skips)
        by_grace = grace is not None and settlement.moment - row["to_instant"] > grace
        if settlement.moment - oldest <= late and not by_grace:
            yield f"skipped as a misfire though at most {late.total_seconds():g} s late"
    if missed and wanted and wanted[0] < max(row["to_instant"] for row in missed):
        yield "an older instant fired while a newer one was skipped as a misfire"
    for at in wanted:
        if grace is not None and settlement.moment - at > grace + _UNDER_WAY:
            yield f"it fired though later than its grace of {seconds} s"
    acted = bool(wanted) and wanted[-1] - wanted[0] > late
    yield from _wrong_by_policy(settlement, acted=acted, graceful=grace is not None)


def _wrong_by_policy(settlement: Settlement, *, acted: bool, graceful: bool) -> Iterator[str]:
    """`acted`: the fires alone lie so far apart that the policy must have acted on them."""
    schedule, wanted = settlement.schedule, settlement.wanted
    policy = schedule.get("misfire_policy") or "FIRE_ONCE"
    window = timedelta(seconds=schedule.get("jitter_seconds") or 0)
    if policy == "SKIP":
        for at in wanted:
            if settlement.moment - at > _SKIPPED_AFTER + window + _UNDER_WAY:
                yield "it fired more than a minute late under SKIP"
        for row in settlement.missed:
            if not graceful and settlement.moment - row["to_instant"] <= _SKIPPED_AFTER + window:
                yield "skipped under SKIP though at most a minute late"
        return
    most = 1 if policy == "FIRE_ONCE" else schedule.get("misfire_max_runs") or 100
    left_out = any(row["reason"] in _LEFT_OUT for row in settlement.skips)
    if (left_out or acted) and len(wanted) > most:
        yield f"{len(wanted)} fired after an outage under {policy}, at most {most} may"
    if settlement.missed and not graceful and len(wanted) < most:
        yield f"{len(wanted)} fired after an outage under {policy}, {most} must"
