"""The log of changes and history tell one story of each execution, and it is a legal one.

The states and what leads from one to another are the product's own table. What an event does to
fence, attempt and worker is said here once more, in other words.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from chaos.checker import words
from chaos.checker.history import History, either
from chaos.checker.verdict import Findings
from chaos.facts import Change, Row
from foliot.core.states import EXECUTION

_LEGAL: Final = frozenset((str(old), str(new)) for (old, _), new in EXECUTION.items())
_BEGINNINGS: Final = frozenset({"PENDING", "WAITING", "QUEUED"})
# By how much the attempt's number moves with the state; not named: it stays.
_STEPS: Final = {
    ("QUEUED", "RUNNING"): {1},
    ("RUNNING", "QUEUED"): {0, -1},  # lost, or handed back
    ("RUNNING", "PENDING"): {-1},
    ("RUNNING", "WAITING"): {-1},
}
_SAME: Final = ("status", "fence", "attempt_number", "worker_id", "available_at", "claimed_at")


def check_legal_path(history: History, findings: Findings) -> None:
    for id_, changes in history.changes.items():
        findings.saw(len(changes))
        if changes[0].old is not None:
            findings.violate("its first change is not its coming", [words.change(changes[0])])
        for change in changes:
            for title in _wrong_step(change):
                findings.violate(title, [words.change(change)])
        for before, after in pairwise(changes):
            if _breaks(before.new, after.old):
                title = "a change begins where the one before it did not end"
                findings.violate(title, [words.change(before), words.change(after)])
        _check_end(history, changes, history.attempts.get(id_, []), findings)
    for id_, row in history.known.items():
        if id_ not in history.changes:
            findings.violate("an execution that no change tells of", [words.execution(row)])


def _wrong_step(change: Change) -> Iterator[str]:
    old, new = change.old, change.new
    if new is None:
        return
    if old is None:
        if new["status"] not in _BEGINNINGS:
            yield f"it came as {new['status']}"
        if new["fence"] or new["attempt_number"] or new["worker_id"] is not None:
            yield "it came with a fence, an attempt or a worker"
        return
    pair = (old["status"], new["status"])
    claimed = pair == ("QUEUED", "RUNNING")
    if pair[0] != pair[1] and pair not in _LEGAL:
        yield f"no event leads from {pair[0]} to {pair[1]}"
    if new["fence"] - old["fence"] != (1 if claimed else 0):
        yield f"its fence went from {old['fence']} to {new['fence']}"
    steps = _STEPS.get(pair, {0})
    if new["attempt_number"] - old["attempt_number"] not in steps:
        yield f"its attempt went from {old['attempt_number']} to {new['attempt_number']}"
    if (new["worker_id"] is not None) != (new["status"] == "RUNNING"):
        yield "it runs without a worker, or has one and does not run"
    if old["cancel_requested_at"] is not None and pair[0] != pair[1]:
        yield "it was asked to stop, and goes on"


def _breaks(before: Row | None, after: Row | None) -> bool:
    if before is None or after is None:
        return before is not after
    return any(before[name] != after[name] for name in _SAME)


def _check_end(
    history: History, changes: list[Change], attempts: list[Row], findings: Findings
) -> None:
    last = changes[-1]
    finals = [row for row in attempts if row["final"]]
    live = history.live.get(either(last)["id"])
    if last.new is None:
        if not finals:
            findings.violate("it is gone, and history does not know how", [words.change(last)])
        for row in finals:
            if row["status"] != "SKIPPED" and not _is_end(last.old or {}, row):
                title = f"no event leads from {(last.old or {})['status']} to {row['status']}"
                findings.violate(title, [words.change(last), words.attempt(row)])
        if live is not None:
            findings.violate("it is gone and there", [words.change(last), words.execution(live)])
    elif live is None:
        findings.violate("it is not there, and nobody took it away", [words.change(last)])
    elif _breaks(last.new, live):
        title = "it is not as its last change left it"
        findings.violate(title, [words.change(last), words.execution(live)])


def _is_end(old: Row, row: Row) -> bool:
    return (old["status"], row["status"]) in _LEGAL and old["fence"] == row["fence"]


def check_terminal_is_final(history: History, findings: Findings) -> None:
    for id_, attempts in history.attempts.items():
        finals = [row for row in attempts if row["final"]]
        findings.saw(len(finals))
        if len(finals) > 1:
            findings.violate(f"it was over {len(finals)} times", map(words.attempt, finals))
        elif finals and attempts[-1] is not finals[0]:
            title = "it was over, and another attempt of it ended later"
            findings.violate(title, map(words.attempt, [finals[0], attempts[-1]]))
        if finals and id_ in history.live:
            title = "it is over, and there is a live row of it"
            records = [words.attempt(finals[0]), words.execution(history.live[id_])]
            findings.violate(title, records)
    for changes in history.changes.values():
        for before, after in pairwise(changes):
            if before.new is None:
                title = "it was gone, and something of it was written later"
                findings.violate(title, [words.change(before), words.change(after)])
                break
