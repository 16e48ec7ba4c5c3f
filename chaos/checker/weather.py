"""What nobody should notice: nodes whose clocks are wrong change no stored time, and the whole runs
without an outcry and without growing."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from chaos.checker import words
from chaos.checker.claims import REMOTE
from chaos.checker.history import History
from chaos.checker.verdict import Findings
from chaos.facts import Change, Row, Sample

# A statement reads its time once and has five seconds; a pass of rescuers decides by the time it
# began with.
_STATEMENT: Final = timedelta(seconds=6)
_PASS: Final = timedelta(seconds=15)
_CLOCKS: Final = timedelta(seconds=1)
# Requests have transactions of several statements, over a network that may be slow.
_WRITTEN: Final = {
    "created_at": _PASS,
    "claimed_at": _STATEMENT,
    "queued_at": _PASS,
    "cancel_requested_at": _PASS,
}
_PAST: Final = {
    "attempts": ("claimed_at", "finished_at", "queued_at", "cancel_requested_at"),
    "skips": ("recorded_at",),
    "job_versions": ("valid_from",),
    "workers": ("registered_at", "last_heartbeat_at"),
    "dead_letters": ("failed_at",),
    "executions": ("created_at", "claimed_at", "queued_at", "cancel_requested_at"),
    "rate_starts": ("at",),
}

# Bounds of one process from its thirtieth second to its end, and of the whole.
WARM_SECONDS: Final = 30.0
RSS_GROWTH_MAX: Final = 128 * 1024 * 1024
DESCRIPTORS_GROWTH_MAX: Final = 64
CONNECTIONS_GROWTH_MAX: Final = 20
# The server ends a session that is idle in a transaction for two seconds; samples come each second.
IDLE_SECONDS_MAX: Final = 2.0 + 2.0


def check_clocks_ignored(history: History, findings: Findings) -> None:
    facts = history.facts
    low, high = facts.began_at - _CLOCKS, facts.read_at + _CLOCKS
    for table, columns in _PAST.items():
        for row in getattr(facts, table):
            if table == "workers" and row["id"] == REMOTE:
                continue
            for column in columns:
                at = row.get(column)
                if at is not None:
                    findings.saw()
                    if not low <= at <= high:
                        title = f"{column} of {table} lies outside of the run: {at}"
                        findings.violate(title, [str(row.get("id") or row.get("job_id"))])
    _check_fires(history, findings)
    for change in facts.execution_changes:
        for title in _wrong_times(history, change):
            findings.violate(title, [words.change(change)])
    _check_started(facts.attempts, findings)
    _check_ends(history, findings)
    if not any(one.kind == "clock off" and one.detail.get("seconds") for one in facts.faults):
        findings.forget()  # all clocks were right: nothing is shown by that


def _check_fires(history: History, findings: Findings) -> None:
    """By the database's clock no instant has an outcome before its time."""
    for row in history.known.values():
        if row["trigger"] in ("SCHEDULE", "AFTER") and row.get("created_at") is not None:
            findings.saw()
            if row["created_at"] < row["scheduled_time"]:
                findings.violate("it fired before its instant", [words.execution(row)])
    for row in history.facts.skips:
        findings.saw()
        if row["recorded_at"] < row["to_instant"]:
            findings.violate("it was skipped before its instant", [words.skip(row)])


def _wrong_times(history: History, change: Change) -> Iterator[str]:
    """What a change writes as the time of now lies shortly before its commit."""
    new, old = change.new, change.old
    if new is None:
        return
    for name, within in _WRITTEN.items():
        at = new.get(name)
        if at is None or (old is not None and old.get(name) == at):
            continue
        if not history.earlier(change.committed_at, within) <= at <= change.committed_at:
            yield f"{name} is {at}, committed at {change.committed_at}"


def _check_started(attempts: tuple[Row, ...], findings: Findings) -> None:
    """When a handler began is told by its worker, in the database's time."""
    for row in attempts:
        if row["started_at"] is not None and row["claimed_at"] is not None:
            findings.saw()
            low, high = row["claimed_at"] - _CLOCKS, row["finished_at"] + _CLOCKS
            if not low <= row["started_at"] <= high:
                title = f"it began at {row['started_at']}, outside of its attempt"
                findings.violate(title, [words.attempt(row)])


def _check_ends(history: History, findings: Findings) -> None:
    for id_, final in history.finals.items():
        changes = history.changes.get(id_)
        if changes and changes[-1].new is None:
            findings.saw()
            committed = changes[-1].committed_at
            low = history.earlier(committed, _PASS)
            if not low <= final["finished_at"] <= committed + _CLOCKS:
                title = f"it ended at {final['finished_at']}, committed at {committed}"
                findings.violate(title, [words.attempt(final), words.change(changes[-1])])


def check_quiet(history: History, findings: Findings) -> None:
    facts = history.facts
    findings.saw(len(facts.samples))
    for row in facts.outcries:
        findings.violate(f"an outcry of {row.get('node')}", [str(row.get("line"))])
    for title, records in (*_grown_nodes(facts.samples), *_grown_connections(facts.samples)):
        findings.violate(title, records)
    for sample in facts.samples:
        allowed = sample.at - history.earlier(sample.at, timedelta(seconds=IDLE_SECONDS_MAX))
        if sample.idle_in_transaction_seconds > allowed.total_seconds():
            seconds = sample.idle_in_transaction_seconds
            findings.violate(f"idle in a transaction for {seconds:.1f} s", [_sample(sample)])


def _grown_nodes(samples: tuple[Sample, ...]) -> Iterator[tuple[str, list[str]]]:
    """From warm to last, of each process."""
    lives: dict[tuple[str, int], list[tuple[float, Row]]] = defaultdict(list)
    for sample in samples:
        for name, row in sample.nodes.items():
            lives[name, row["pid"]].append((sample.monotonic, row))
    for (name, _), life in lives.items():
        warm = [row for at, row in life if at - life[0][0] >= WARM_SECONDS]
        if len(warm) < 2:
            continue
        for column, most in (
            ("rss_bytes", RSS_GROWTH_MAX),
            ("descriptors", DESCRIPTORS_GROWTH_MAX),
        ):
            grown = warm[-1][column] - warm[0][column]
            if grown > most:
                yield (
                    f"{column} of {name} grew by {grown}",
                    [str(dict(warm[0])), str(dict(warm[-1]))],
                )


def _grown_connections(samples: tuple[Sample, ...]) -> Iterator[tuple[str, list[str]]]:
    """The last ones against the most of the first half: nodes come and go in between."""
    if len(samples) < 4:
        return
    half = samples[: len(samples) // 2]
    most, last = max(one.connections for one in half), samples[-1]
    if last.connections > most + CONNECTIONS_GROWTH_MAX:
        yield f"connections grew from {most} to {last.connections}", [_sample(last)]


def _sample(sample: Sample) -> str:
    return (
        f"sample {words.moment(sample.at)}: connections={sample.connections} "
        f"idle_in_transaction={sample.idle_in_transaction_seconds:.1f} "
        f"owned_shards={sample.owned_shards} live_rows={sample.live_rows}"
    )
