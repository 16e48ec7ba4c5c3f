"""A change of a job holds from its commit on: nothing fires while it is paused or deleted, nothing
under a version that is not in force, no instant under two; and what was acknowledged has happened.
"""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from chaos.checker import words
from chaos.checker.history import CLOCKS, History
from chaos.checker.verdict import Findings
from chaos.facts import Exchange, Row

# A fire reads its time, then its jobs: a version may come into force in between.
_READ_BEFORE: Final = timedelta(seconds=1)
_WANTED: Final = {"pause": "PAUSED", "resume": "ACTIVE", "delete": "DELETED"}
_FIRED: Final = frozenset({"SCHEDULE", "AFTER"})
# Where an exchange has the version that it was sent for.
_IF_MATCH: Final = "If-Match"


def check_edits_and_pauses(history: History, findings: Findings) -> None:
    findings.saw(sum(max(0, len(versions) - 1) for versions in history.versions.values()))
    instants: dict[tuple[UUID, datetime], list[Row]] = defaultdict(list)
    for row in history.known.values():
        if row["trigger"] in _FIRED:
            for title, records in _wrong_fire(history, row):
                findings.violate(title, records)
        if row["trigger"] == "SCHEDULE":
            instants[row["job_id"], row["scheduled_time"]].append(row)
    for rows in instants.values():
        if len(rows) > 1:
            findings.violate("one instant fired twice", map(words.execution, rows))
    for row in history.facts.skips:
        if row["reason"] == "PAUSED":
            findings.saw()
            _check_paused_skip(history, row, findings)
    _check_acknowledged(history, findings)
    _check_edits(history, findings)


def _wrong_fire(history: History, row: Row) -> Iterator[tuple[str, list[str]]]:
    version = history.version(row["job_id"], row["job_version"])
    if version is None:
        yield "it fired under a version that never was", [words.execution(row)]
        return
    records = [words.execution(row), words.version(version)]
    if version["status"] in ("PAUSED", "DELETED"):
        yield f"it fired while its job was {version['status']}", records
    created: datetime | None = row.get("created_at")
    if created is None:
        return
    if created < history.earlier(version["valid_from"], _READ_BEFORE):
        yield "it fired before its version was in force", records
    following = history.version(row["job_id"], row["job_version"] + 1)
    if following is not None and created > following["valid_from"]:
        title = "it fired under a version that was no longer in force"
        yield title, [*records, words.version(following)]


def _check_paused_skip(history: History, row: Row, findings: Findings) -> None:
    """Instants are skipped as PAUSED by what ends the pause they lie in."""
    versions = history.versions.get(row["job_id"], [])
    for place, version in enumerate(versions):
        if version["valid_from"] == row["recorded_at"] and place:
            paused = _paused_since(versions, place - 1)
            if paused is not None and row["from_instant"] > paused:
                return
    records = [words.skip(row), *map(words.version, versions[-6:])]
    findings.violate("skipped as PAUSED, and no pause explains it", records)


def _paused_since(versions: list[Row], place: int) -> datetime | None:
    """When the pause began that was in force with this version; None if there was none."""
    since: datetime | None = None
    while place >= 0 and versions[place]["status"] == "PAUSED":
        since = versions[place]["valid_from"]
        place -= 1
    return since


def _check_acknowledged(history: History, findings: Findings) -> None:
    for exchange in history.facts.exchanges:
        if exchange.job_id is None or not exchange.is_done:
            continue
        if exchange.action in _WANTED or exchange.action == "edit":
            findings.saw()
            if not _is_in_versions(history, exchange):
                versions = history.versions.get(exchange.job_id, [])
                title = f"an acknowledged {exchange.action} that no version tells of"
                shown = [words.exchange(exchange), *map(words.version, versions[-6:])]
                findings.violate(title, shown)


def _is_in_versions(history: History, exchange: Exchange) -> bool:
    """A version with that state was in force at some time between the question, sent for the first
    time, and the answer; an edit's answer names the version that it made."""
    if exchange.job_id is None or exchange.answered is None:
        return False
    versions = history.versions.get(exchange.job_id, [])
    if exchange.action == "edit":
        number = (exchange.answer or {}).get("version")
        return number is None or history.version(exchange.job_id, number) is not None
    low, high = history.asked_at(exchange) - CLOCKS, history.at(exchange.answered) + CLOCKS
    wanted = _WANTED[exchange.action]
    ends = [*(row["valid_from"] for row in versions[1:]), None]
    for row, end in zip(versions, ends, strict=True):
        if row["status"] == wanted and row["valid_from"] <= high and (end is None or end >= low):
            return True
    return wanted == "ACTIVE" and any(row["status"] == "COMPLETED" for row in versions)


def _check_edits(history: History, findings: Findings) -> None:
    """Each acknowledged edit has made a version of its own, and what was sent for a certain version
    the one after that: an edit of what was changed meanwhile, or never was, is refused."""
    made: dict[tuple[UUID, int], Exchange] = {}
    for exchange in history.facts.exchanges:
        number = (exchange.answer or {}).get("version")
        is_edit = exchange.action == "edit" and exchange.is_done
        if not is_edit or number is None or exchange.job_id is None:
            continue
        seen = exchange.body.get(_IF_MATCH)
        if seen is not None and number != seen + 1:
            title = f"an edit of version {seen} was acknowledged as version {number}"
            findings.violate(title, [words.exchange(exchange)])
        other = made.setdefault((exchange.job_id, number), exchange)
        if other is not exchange and (exchange.key is None or exchange.key != other.key):
            title = f"two acknowledged edits made the one version {number}"
            findings.violate(title, map(words.exchange, [other, exchange]))
