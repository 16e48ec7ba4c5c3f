"""After the database was away for longer than a worker may be silent, nobody is taken for dead who
only could not write: whoever was heard before it is heard again, under the same id.

A worker that is dead to the others begins anew under another id: the old one is never heard again.
Schedulers keep their shards just so, which `stale-lease-refused` looks at.
"""

from datetime import timedelta
from typing import Final

from chaos.checker import words
from chaos.checker.claims import REMOTE, SILENCING
from chaos.checker.history import History
from chaos.checker.verdict import Findings
from chaos.facts import LONG_OUTAGE, Fault, Row

# Of one that did not come about, as a lock that could not be had, there is nothing to forgive.
_LONG_SECONDS: Final = 15.0
# A worker is heard every five seconds; the machine is not always prompt.
_HEARD_BEFORE: Final = timedelta(seconds=8)
_HEARD_AGAIN: Final = timedelta(seconds=15)


def check_outages_forgiven(history: History, findings: Findings) -> None:
    for outage in history.faults:
        if outage.kind == LONG_OUTAGE and outage.healed - outage.began > _LONG_SECONDS:
            for row in history.facts.workers:
                if row["id"] != REMOTE:
                    _check_forgiven(history, outage, row, findings)


def _check_forgiven(history: History, outage: Fault, row: Row, findings: Findings) -> None:
    """Of who was at work when it began. Whoever was struck besides may be gone for that."""
    began, healed = history.at(outage.began), history.at(outage.healed)
    heard = row["last_heartbeat_at"]
    if row["registered_at"] > began or heard < began - _HEARD_BEFORE:
        return
    if heard > healed:
        findings.saw()
        return
    node = history.node_of[row["id"]]
    low, high = began - _HEARD_BEFORE, healed + _HEARD_AGAIN
    struck = any(fault.kind.startswith(SILENCING) for fault in history.faults_of(node, low, high))
    if not struck and high < history.facts.read_at:
        title = f"{row['name']} could not write for a while, and was taken for dead"
        findings.violate(title, [words.fault(outage), words.worker(row)])
