"""Whether attempts failed as they meant to.

A handler tells the sink before it raises. An error that is neither the loss of a worker or process
nor a matter of time, and of which the sink has no word, is one that the run itself or the product
has made: then the run has not shown what it seems to show.
"""

from collections import defaultdict
from typing import Final
from uuid import UUID

from chaos.checker import words
from chaos.checker.history import History
from chaos.checker.verdict import Findings

# What befalls an attempt from outside: nobody tells of it in time.
_BEFALLS: Final = frozenset({"WORKER_LOST", "TIMEOUT", "EXIT_CODE", "EXPIRED", "CANCELLED"})
_MEANT: Final = "failing"


def check_failures_meant(history: History, findings: Findings) -> None:
    told: dict[tuple[UUID, int], set[str]] = defaultdict(set)
    telling = set()
    for effect in history.facts.effects:
        told[effect.execution_id, effect.fence].add(effect.what)
        telling.add(effect.job)
    for row in history.facts.attempts:
        if row["job_name"] not in telling:
            continue
        findings.saw()
        error = row["error"] or {}
        if not error or error.get("type") in _BEFALLS:
            continue
        if _MEANT not in told.get((row["id"], row["fence"]), ()):
            said = f"{error.get('type')}: {error.get('message')}"
            findings.violate("it failed, and never meant to", [words.attempt(row), said])
