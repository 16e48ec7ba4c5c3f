"""What attempts say while they run, progress and lines: kept under the fence of whoever said it,
and nothing more once another has taken the execution from a silent worker and it was claimed again.
"""

from datetime import timedelta
from itertools import zip_longest
from typing import Final
from uuid import UUID

from chaos.checker import words
from chaos.checker.history import History, Hold
from chaos.checker.verdict import Findings
from chaos.facts import Row

# A statement that has read whose it is may still be under way when that changes.
_UNDER_WAY: Final = timedelta(seconds=1)


def check_stale_reports_refused(history: History, findings: Findings) -> None:
    holds = _holds(history)
    for row in history.facts.reports:
        findings.saw()
        if row["said"] != row["fence"]:
            title = f"a {row['kind']} of fence {row['said']} was written under {row['fence']}"
            findings.violate(title, [words.report(row)])
        hold, following = holds.get((row["execution_id"], row["said"]), (None, None))
        if hold is None:
            findings.violate(f"a {row['kind']} of a claim that never was", [words.report(row)])
        elif following is not None and _is_stale(history, row, hold, following):
            title = f"a {row['kind']} of a hold that was taken away, and it was kept"
            changes = [hold.claimed, *filter(None, [hold.ended]), following.claimed]
            findings.violate(title, [*map(words.change, changes), words.report(row)])


def _holds(history: History) -> dict[tuple[UUID, int], tuple[Hold, Hold | None]]:
    """By execution and fence, each with the claim that followed."""
    return {
        (id_, hold.fence): (hold, following)
        for id_, holds in history.holds.items()
        for hold, following in zip_longest(holds, holds[1:])
    }


def _is_stale(history: History, row: Row, hold: Hold, following: Hold) -> bool:
    """Whoever ended it by its own hand may bring its last lines later."""
    late = history.earlier(row["committed_at"], _UNDER_WAY) > following.claimed.committed_at
    return bool(late and history.was_taken(hold))


def stale_reports(history: History) -> tuple[int, int]:
    """Of attempts that came to their end after another claim had begun, and said so just before:
    of how many the last words were refused, and of how many they were kept."""
    holds = _holds(history)
    spoke, kept = set(), set()
    for row in history.facts.reports:
        named = (row["execution_id"], row["said"])
        spoke.add(named)
        hold, following = holds.get(named, (None, None))
        if hold is not None and following is not None and _is_stale(history, row, hold, following):
            kept.add(named)
    ended = {
        (effect.execution_id, effect.fence)
        for effect in history.facts.effects
        if effect.what == "done"
        and (found := holds.get((effect.execution_id, effect.fence))) is not None
        and found[1] is not None
        and history.was_taken(found[0])
        and history.at(effect.monotonic) > found[1].claimed.committed_at
    }
    return len(ended & spoke - kept), len(kept)
