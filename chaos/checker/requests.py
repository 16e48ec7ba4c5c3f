"""A request is carried out once however often it is sent, and a cancelled execution stays so."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Final
from uuid import UUID

from chaos.checker import words
from chaos.checker.history import History
from chaos.checker.instants import ASKING, named_executions
from chaos.checker.verdict import Findings
from chaos.facts import Exchange, Row

_MAKING: Final = ASKING | {"replay"}
# A worker hears of a wish to cancel within a beat, and looks each second besides.
_TOLD_WITHIN: Final = timedelta(seconds=5)
_SLACK: Final = timedelta(seconds=8)


def check_requests_once(history: History, findings: Findings) -> None:
    groups: dict[tuple[str, str], list[Exchange]] = defaultdict(list)
    for exchange in history.facts.exchanges:
        if exchange.key is not None:
            groups[exchange.action, exchange.key].append(exchange)
    for (action, _), exchanges in groups.items():
        findings.saw()
        done = [one for one in exchanges if one.is_done]
        if len({repr(_contents(one)) for one in done}) > 1:
            findings.violate("one key, two requests, both carried out", _told(done))
        elif len({_answer(one) for one in done}) > 1:
            findings.violate("one request, two answers", _told(done))
        if action in _MAKING:
            _check_kept(history, done, findings)
    _check_marks(history, findings)
    _check_created(history, findings)


def _contents(exchange: Exchange) -> list[tuple[str, object]]:
    return sorted(exchange.body.items(), key=lambda item: item[0])


def _answer(exchange: Exchange) -> tuple[object, ...]:
    """What was made, by its name: the rest of an answer may tell how it went on since."""
    named = tuple(named_executions(exchange))
    return named or (exchange.job_id, (exchange.answer or {}).get("job_id"))


def _told(exchanges: Iterable[Exchange]) -> Iterator[str]:
    return map(words.exchange, exchanges)


def _check_kept(history: History, done: list[Exchange], findings: Findings) -> None:
    for exchange in done[:1]:
        for execution_id in named_executions(exchange):
            if execution_id not in history.known:
                title = "an acknowledged request whose execution is nowhere"
                findings.violate(title, [words.exchange(exchange)])


def _check_marks(history: History, findings: Findings) -> None:
    """Executions carry their request's mark: no mark is on two of them."""
    marked: dict[str, dict[UUID, Row]] = defaultdict(dict)
    for row in (*history.facts.attempts, *history.facts.executions):
        if row["trigger"] in ("MANUAL", "ENQUEUE"):
            mark = (row.get("labels") or {}).get("request") or _own(row.get("payload"))
            if mark is not None:
                marked[mark][row["id"]] = row
    for mark, rows in marked.items():
        if len(rows) > 1:
            title = f"the request {mark} was carried out {len(rows)} times"
            findings.violate(title, map(words.execution, rows.values()))


def _own(payload: object) -> str | None:
    mark = payload.get("request") if isinstance(payload, dict) else None
    return mark if isinstance(mark, str) else None


def _check_created(history: History, findings: Findings) -> None:
    """Jobs that were acknowledged are there; names are given once in a run."""
    names: dict[str, list[Row]] = defaultdict(list)
    for job in history.facts.jobs:
        names[job["name"]].append(job)
    for name, jobs in names.items():
        if len(jobs) > 1:
            findings.violate(f"{len(jobs)} jobs named {name}", [str(job["id"]) for job in jobs])
    for exchange in history.facts.exchanges:
        if exchange.action == "create" and exchange.is_done:
            findings.saw()
            if exchange.job_id is not None and exchange.job_id not in history.jobs:
                title = "an acknowledged job that is nowhere"
                findings.violate(title, [words.exchange(exchange)])


def check_cancel_holds(history: History, findings: Findings) -> None:
    for exchange in history.facts.exchanges:
        if exchange.action == "cancel" and exchange.is_done and exchange.execution_id:
            findings.saw()
            final = history.finals.get(exchange.execution_id)
            if final is not None and final["status"] != "CANCELLED":
                title = f"a cancel was acknowledged, and it is {final['status']}"
                findings.violate(title, [words.exchange(exchange), words.attempt(final)])
    for row in history.facts.attempts:
        if row["cancel_requested_at"] is not None:
            findings.saw()
            if row["status"] != "CANCELLED" or not row["final"]:
                title = "it was asked to stop, and ended otherwise"
                findings.violate(title, [words.attempt(row)])
            _check_prompt(history, row, findings)


def _check_prompt(history: History, row: Row, findings: Findings) -> None:
    asked, ended = row["cancel_requested_at"], row["finished_at"]
    grace = timedelta(seconds=history.policy(row).get("cancel_grace_seconds") or 0)
    due = asked + _TOLD_WITHIN + grace + _SLACK
    node = history.node_of.get(row["worker_id"], "worker")
    if ended > due and history.was_spared(asked, ended, node):
        title = f"it took {(ended - asked).total_seconds():.1f} s to stop, its grace is {grace}"
        findings.violate(title, [words.attempt(row)])
