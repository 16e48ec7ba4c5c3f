"""Whether attempts failed as they meant to, and whether what befell the others had a cause.

A handler tells the sink before it raises. An error that is neither the loss of a worker or process
nor a matter of time, and of which the sink has no word, is one that the run itself or the product
has made: then the run has not shown what it seems to show. What befalls an attempt from outside
needs no word of its own, but a reason that others have told of.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Final
from uuid import UUID

from chaos.checker import words
from chaos.checker.claims import silenced
from chaos.checker.history import CLOCKS, History, Hold
from chaos.checker.verdict import Findings
from chaos.facts import Row

# What befalls an attempt from outside: nobody tells of it in time.
_BEFALLS: Final = frozenset({"WORKER_LOST", "TIMEOUT", "EXIT_CODE", "EXPIRED", "CANCELLED"})
_MEANT: Final = "failing"
_ENDING: Final = "poison"
_FIRED: Final = frozenset({"SCHEDULE", "AFTER"})
_TIMEOUT_SECONDS: Final = 300.0  # of a job that says nothing
# Of a call that never got through, which has a time of its own.
_NOT_CONNECTED: Final = "no connection"
# A claim that was under way when its node was struck is committed within two statements' time.
_CLAIMING: Final = timedelta(seconds=15)

Wrong = Callable[[Row], str | None]


def check_failures_meant(history: History, findings: Findings) -> None:
    _check_causes(history, findings)
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


def _check_causes(history: History, findings: Findings) -> None:
    wrong: dict[str | None, Wrong] = {
        "TIMEOUT": partial(_early_timeout, history),
        "EXPIRED": partial(_early_expiry, history),
        "WORKER_LOST": partial(_lost_without_cause, history),
        "EXIT_CODE": partial(_process_ended_by_nobody, history),
    }
    wishes = _Wishes(history)
    for row in history.facts.attempts:
        check = wrong.get((row["error"] or {}).get("type"))
        titles = [] if check is None else [check(row)]
        if row["status"] == "CANCELLED" and row["final"]:
            titles.append(wishes.missing(row))
        for title in filter(None, titles):
            findings.violate(title, [words.attempt(row)])


def _early_timeout(history: History, row: Row) -> str | None:
    """Its time counts from when it began, which is after its claim. The time that history has of
    the beginning is an estimate and may be late, so it is no measure."""
    message: str = row["error"].get("message") or ""
    if row["claimed_at"] is None or message.startswith(_NOT_CONNECTED):
        return None
    allowed = history.policy(row).get("timeout_seconds") or _TIMEOUT_SECONDS
    lasted: timedelta = row["finished_at"] - row["claimed_at"]
    if lasted < timedelta(seconds=allowed) - CLOCKS:
        return f"it timed out after {lasted.total_seconds():.2f} s of {allowed:g}"
    return None


def _early_expiry(history: History, row: Row) -> str | None:
    """By the last row that there was of it: the same clock has read both times."""
    last = [one.old for one in history.changes.get(row["id"], ()) if one.new is None]
    if not last or last[-1] is None:
        return None
    deadline: datetime | None = last[-1]["start_by"]
    if deadline is None:
        return "it expired without a start deadline"
    if row["finished_at"] < deadline:
        return f"it expired before its start deadline {words.moment(deadline)}"
    return None


def _lost_without_cause(history: History, row: Row) -> str | None:
    holds = history.holds.get(row["id"], ())
    hold = next((one for one in holds if one.fence == row["fence"]), None)
    if hold is None or history.was_silent(hold) or _was_silenced(history, hold):
        return None
    return "its worker was called lost, and neither was silent nor struck"


def _process_ended_by_nobody(history: History, row: Row) -> str | None:
    """A handler that ends its process tells the sink before; else the run has killed it."""
    told = history.effects.get(row["id"], ())
    if any(one.fence == row["fence"] and one.what == _ENDING for one in told):
        return None
    node, low = history.node_of.get(row["worker_id"], ""), row["claimed_at"] - CLOCKS
    faults = history.faults_of(node, low, row["finished_at"] + CLOCKS)
    if any(fault.kind.startswith("kill") for fault in faults):
        return None
    return "its process ended, and neither it nor anybody else had done that"


def _was_silenced(history: History, hold: Hold) -> bool:
    """A worker that was frozen or is told to leave says so itself, before it has been silent."""
    if hold.ended is None:
        return False
    low = hold.claim["claimed_at"] - _CLAIMING
    return silenced(history, history.node_of.get(hold.worker_id, ""), low, hold.ended.committed_at)


class _Wishes:
    """Who wanted something cancelled, and when: a client, whoever deleted its job, or a newer
    instant of the job under CANCEL_PREVIOUS."""

    def __init__(self, history: History) -> None:
        self._asked: dict[UUID, datetime] = {}
        self._deleted: dict[UUID, datetime] = {}
        self._known = history.known
        self._replaced = _replacements(history)
        for exchange in history.facts.exchanges:
            sent = history.at(exchange.sent) - CLOCKS
            if exchange.action == "cancel" and exchange.execution_id is not None:
                _keep_first(self._asked, exchange.execution_id, sent)
            elif exchange.action == "delete" and exchange.job_id is not None:
                _keep_first(self._deleted, exchange.job_id, sent)

    def missing(self, row: Row) -> str | None:
        """An unanswered wish is one; a wish that came after the end is none."""
        ended: datetime = row["finished_at"]
        if _is_by(self._asked, row["id"], ended) or _is_by(self._deleted, row["job_id"], ended):
            return None
        if row["trigger"] in _FIRED and self._is_replaced(row):
            return None
        return "it was cancelled, and nobody had asked for that"

    def _is_replaced(self, row: Row) -> bool:
        made: datetime = self._known[row["id"]].get("created_at") or row["scheduled_time"]
        newer = self._replaced.get(row["job_id"], ())
        return any(id_ != row["id"] and made <= at <= row["finished_at"] for id_, at in newer)


def _replacements(history: History) -> dict[UUID, list[tuple[UUID, datetime]]]:
    """What waits for the executions before it to be cancelled: such a fire has told them to."""
    found: dict[UUID, list[tuple[UUID, datetime]]] = defaultdict(list)
    for id_, changes in history.changes.items():
        row = changes[0].new
        if changes[0].old is None and row is not None and row["hold"] == "OVERLAP":
            schedule = history.policy(row).get("schedule") or {}
            if schedule.get("overlap_policy") == "CANCEL_PREVIOUS":
                found[row["job_id"]].append((id_, row["created_at"]))
    return found


def _keep_first(times: dict[UUID, datetime], id_: UUID, at: datetime) -> None:
    times[id_] = min(at, times.get(id_, at))


def _is_by(times: Mapping[UUID, datetime], id_: UUID, ended: datetime) -> bool:
    at = times.get(id_)
    return at is not None and at <= ended
