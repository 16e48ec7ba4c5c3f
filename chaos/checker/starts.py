"""Nothing starts before its time or after its deadline, and nothing runs past its timeout."""

from datetime import datetime, timedelta
from typing import Final

from chaos.checker import words
from chaos.checker.history import History, Hold
from chaos.checker.verdict import Findings
from chaos.facts import Row

# A claim reads its time, then its rows; it writes the time that it reads with them.
_CLAIMING: Final = timedelta(seconds=1)
# Past timeout and grace a worker has five seconds more, then a rescuer looks every two.
_SECOND_LINE: Final = timedelta(seconds=5 + 2)
# A machine that runs all of it at once is not always prompt.
_SLACK: Final = timedelta(seconds=8)


def check_never_early(history: History, findings: Findings) -> None:
    for holds in history.holds.values():
        for hold in holds:
            findings.saw()
            if hold.claim["claimed_at"] < hold.claim["available_at"]:
                findings.violate("claimed before its time", [words.change(hold.claimed)])
    for row in history.facts.attempts:
        if row["claimed_at"] is not None and row["claimed_at"] < row["available_at"]:
            findings.violate("claimed before its time", [words.attempt(row)])


def check_deadlines_kept(history: History, findings: Findings) -> None:
    ended = {(row["id"], row["fence"]): row for row in history.facts.attempts}
    for id_, holds in history.holds.items():
        for hold in holds:
            findings.saw()
            _check_start(history, hold, findings)
            row = ended.get((id_, hold.fence))
            end = None if hold.ended is None else hold.ended.committed_at
            _check_length(history, hold, end, row, findings)


def _check_start(history: History, hold: Hold, findings: Findings) -> None:
    deadline: datetime | None = hold.claim.get("start_by")
    if deadline is not None and history.earlier(hold.claim["claimed_at"], _CLAIMING) > deadline:
        title = f"it started after its start deadline {deadline}"
        findings.violate(title, [words.change(hold.claimed)])


def _check_length(
    history: History, hold: Hold, end: datetime | None, row: Row | None, findings: Findings
) -> None:
    """Nobody may run on for longer than timeout, grace and what the second line takes; where
    something was broken meanwhile, from the end of that on."""
    policy = history.policy(hold.claim)
    if not policy or hold.event == "SNOOZE":
        return
    allowed = timedelta(seconds=policy["timeout_seconds"] + policy["cancel_grace_seconds"])
    begun = hold.claim["claimed_at"]
    due = begun + allowed + _SECOND_LINE + _SLACK
    over = end or history.facts.read_at
    node = history.node_of.get(hold.worker_id, "worker")
    if over > due and history.was_spared(begun + allowed, over, node):
        title = f"it ran for {(over - begun).total_seconds():.1f} s of {allowed.total_seconds():g}"
        records = [words.change(hold.claimed)]
        records += [] if hold.ended is None else [words.change(hold.ended)]
        records += [] if row is None else [words.attempt(row)]
        findings.violate(title, records)
