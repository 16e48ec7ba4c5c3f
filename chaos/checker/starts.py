"""Nothing starts before its time or after its deadline, and nothing runs past its timeout.

Its time is what was asked for: by a request that gave a delay, or by a handler that snoozed.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from chaos.checker import words
from chaos.checker.history import CLOCKS, History, Hold
from chaos.checker.verdict import Findings
from chaos.facts import Exchange, Row

_DELAYING: Final = frozenset({"enqueue", "trigger", "bulk"})
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
    _check_delays(history, findings)
    _check_snoozes(history, findings)


def _check_delays(history: History, findings: Findings) -> None:
    """A delay counts from when the database heard of it, which is after the request was sent for
    the first time."""
    for exchange in history.facts.exchanges:
        since = history.asked_at(exchange)
        for execution_id, seconds in _delayed(exchange):
            findings.saw()
            row = history.known.get(execution_id)
            due = since + timedelta(seconds=seconds) - CLOCKS
            if row is not None and row["available_at"] < due:
                title = f"it was asked for {seconds:g} s later, and was available before that"
                findings.violate(title, [words.exchange(exchange), words.execution(row)])


def _delayed(exchange: Exchange) -> Iterator[tuple[UUID, float]]:
    """What an acknowledged request made, with its delay. By a unique key it may have been made by
    another one."""
    answer, body = exchange.answer or {}, exchange.body
    if not exchange.is_done or exchange.action not in _DELAYING:
        return
    wanted = body.get("executions") or [body]
    made = answer.get("items") or [{"execution_id": exchange.execution_id}]
    if len(wanted) != len(made):
        return
    for asked, one in zip(wanted, made, strict=True):
        seconds, execution_id = asked.get("delay_seconds"), one.get("execution_id")
        if seconds and execution_id and asked.get("unique_key") is None:
            yield UUID(str(execution_id)), seconds


def _check_snoozes(history: History, findings: Findings) -> None:
    """A handler tells the sink that it snoozes, then it does. Only of what the schedule made: that
    has the payload of its version."""
    for id_, holds in history.holds.items():
        snoozed = [hold for hold in holds if hold.event == "SNOOZE"]
        if not snoozed or snoozed[0].claim["trigger"] != "SCHEDULE":
            continue
        told = {one.fence: one for one in history.effects.get(id_, ()) if one.what == "snoozed"}
        for hold in snoozed:
            seconds, effect = _snooze_seconds(history, hold), told.get(hold.fence)
            row = None if hold.ended is None else hold.ended.new
            if seconds is None or effect is None or hold.ended is None or row is None:
                continue
            findings.saw()
            due = history.at(effect.monotonic) + timedelta(seconds=seconds)
            if row["available_at"] < due - CLOCKS:
                title = f"it snoozed for {seconds:g} s, and was available before that"
                findings.violate(title, [words.effect(effect), words.change(hold.ended)])


def _snooze_seconds(history: History, hold: Hold) -> float | None:
    version = history.version(hold.claim["job_id"], hold.claim["job_version"])
    payload = None if version is None else version["payload"]
    return payload.get("seconds") if isinstance(payload, dict) else None


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
