"""Every instant has exactly one outcome, and nothing runs that nobody asked for.

Instants come from the oracle. What follows other jobs must name an end of one of them, and every
end must be followed; what was asked for must be known to whoever asked.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from chaos.checker import words
from chaos.checker.history import History
from chaos.checker.owed import SETTLED_WITHIN, JobLedger, Page, ledgers
from chaos.checker.verdict import Findings
from chaos.facts import Exchange, Row

_ASKED: Final = frozenset({"MANUAL", "ENQUEUE"})
ASKING: Final = frozenset({"enqueue", "trigger", "bulk"})
_AGAIN: Final = frozenset({"REPLAY", "RETRY"})
_ENDS: Final = {
    "SUCCEEDED": frozenset({"SUCCEEDED"}),
    "FINISHED": frozenset({"SUCCEEDED", "FAILED", "TIMED_OUT", "CANCELLED"}),
}
# What nobody ran ends in history right after its last attempt, and is told with the time of asking.
_TOLD_EARLIER: Final = timedelta(seconds=5)
# Of two ends at the same time the one that is told last counts, and its clock may read earlier.
_SAME_TIME: Final = timedelta(seconds=1)


def check_instants_once(history: History, findings: Findings) -> None:
    for ledger in ledgers(history):
        if ledger.untold is not None:
            findings.violate(f"the oracle cannot tell: {ledger.untold}", [_job(ledger.job)])
        for page in ledger.pages:
            findings.saw(sum(1 for at in page.owed if at <= page.stretch.settled))
            for instant in page.lost():
                findings.violate(f"lost: no outcome of {instant}", _lost(ledger, page, instant))
            for instant, fires, skips in page.doubled():
                records = [*map(words.execution, fires), *map(words.skip, skips)]
                findings.violate(f"doubled: {len(records)} outcomes of {instant}", records)
    _check_ends_followed(history, findings)


def check_no_invention(history: History, findings: Findings) -> None:
    for ledger in ledgers(history):
        for row in ledger.strange:
            findings.violate("an outcome of a version that the job never had", [_outcome(row)])
        for page in ledger.pages:
            findings.saw(len(page.fires) + len(page.skips))
            for row in page.unexpected:
                records = [_outcome(row), _schedule(page)]
                findings.violate("an outcome of an instant that the schedule never had", records)
            for row, count in page.miscounted:
                title = f"a skip record of {row['count']} where the schedule has {count}"
                findings.violate(title, [words.skip(row), _schedule(page)])
    _check_causes(history, findings)
    _check_asked(history, findings)


def _lost(ledger: JobLedger, page: Page, instant: datetime) -> Iterator[str]:
    yield _job(ledger.job)
    yield _schedule(page)
    place = page.place(instant) or 0
    for near in (place - 1, place + 1):
        yield from map(words.execution, page.fires.get(near, []))
        yield from map(words.skip, page.skips.get(near, []))


def _job(job: Row) -> str:
    return (
        f"job {job['id']} {job['name']} {job['status']} version={job['version']} "
        f"next_instant={job['next_instant']} last_instant={job['last_instant']}"
    )


def _schedule(page: Page) -> str:
    stretch, schedule = page.stretch, page.stretch.schedule
    said = {name: value for name, value in schedule.items() if value is not None}
    return f"schedule {stretch.schedule_version} in {stretch.after} .. {stretch.until}: {said}"


def _outcome(row: Row) -> str:
    return words.skip(row) if "from_instant" in row else words.execution(row)


def _check_causes(history: History, findings: Findings) -> None:
    """What follows other jobs has the time of an end of one of them."""
    ends = _ends(history)
    for row in history.known.values():
        if row["trigger"] == "AFTER":
            findings.saw()
            after = (history.policy(row).get("schedule") or {}).get("after") or {}
            counted = _ENDS[after.get("on", "SUCCEEDED")]
            parents = [UUID(str(job)) for job in after.get("jobs", ())]
            if not any(_ended(ends[parent], row["scheduled_time"], counted) for parent in parents):
                findings.violate("it follows an end that no parent had", [words.execution(row)])
        elif row["trigger"] in _AGAIN and _retry_of(history, row) not in history.known:
            findings.violate("it repeats an execution that never was", [words.execution(row)])


def _ends(history: History) -> dict[UUID, dict[datetime, str]]:
    ends: dict[UUID, dict[datetime, str]] = defaultdict(dict)
    for row in history.finals.values():
        ends[row["job_id"]][row["finished_at"]] = row["status"]
    return ends


def _ended(ends: dict[datetime, str], at: datetime, counted: frozenset[str]) -> bool:
    if ends.get(at) in counted:
        return True
    return any(
        status in counted and status != "SUCCEEDED" and at <= ended <= at + _TOLD_EARLIER
        for ended, status in ends.items()
    )


def _retry_of(history: History, row: Row) -> UUID | None:
    for known in (*history.attempts.get(row["id"], []), history.live.get(row["id"], {})):
        if known.get("retry_of") is not None:
            retry_of: UUID = known["retry_of"]
            return retry_of
    return None


def _check_asked(history: History, findings: Findings) -> None:
    """Rows that no answer named are at most as many as the requests that got no answer."""
    named: set[UUID] = set()
    unknown: Counter[UUID | None] = Counter()
    for exchange in history.facts.exchanges:
        if exchange.action in ASKING:
            named |= set(named_executions(exchange))
            if exchange.status is None or exchange.status >= 500:
                unknown[exchange.job_id] += len(exchange.body.get("executions", ())) or 1
    nameless: dict[UUID, list[Row]] = defaultdict(list)
    for row in history.known.values():
        if row["trigger"] in _ASKED:
            findings.saw()
            if row["id"] not in named:
                nameless[row["job_id"]].append(row)
    for job_id, rows in nameless.items():
        if len(rows) > unknown[job_id] + unknown[None]:
            title = f"{len(rows)} executions that {unknown[job_id]} unanswered requests explain"
            findings.violate(title, map(words.execution, rows))


def named_executions(exchange: Exchange) -> Iterator[UUID]:
    """The executions that an answer is about."""
    if not exchange.is_done:
        return
    if exchange.execution_id is not None:
        yield exchange.execution_id
    answer = exchange.answer or {}
    for one in (answer, *answer.get("items", ())):
        if isinstance(one, dict) and one.get("execution_id"):
            yield UUID(str(one["execution_id"]))


def _check_ends_followed(history: History, findings: Findings) -> None:
    """Of jobs that follow others and were never edited: what their parents ended with has had its
    outcome. One execution may stand for several ends, the newest of each parent."""
    ends = _ends(history)
    outcomes: dict[UUID, datetime] = {}
    for row in history.known.values():
        if row["trigger"] == "AFTER":
            _newest(outcomes, row["job_id"], row["scheduled_time"])
    for row in history.facts.skips:
        _newest(outcomes, row["job_id"], row["to_instant"])
    for job_id, job in history.jobs.items():
        versions = history.versions.get(job_id, [])
        after = versions[0]["definition"]["schedule"].get("after") if versions else None
        if not after or versions[-1]["schedule_version"] != 1:
            continue
        horizon = _horizon(versions, history.facts.read_at)
        pending = _pending(after, ends, job["created_at"] + _TOLD_EARLIER, horizon)
        if pending is None:
            continue
        findings.saw()
        told = outcomes.get(job_id)
        if told is None or told < pending - _SAME_TIME:
            records = [_job(job), f"its parents had ended by {pending}, its last outcome is {told}"]
            findings.violate("lost: an end of its parents that it never followed", records)


def _newest(outcomes: dict[UUID, datetime], job_id: UUID, at: datetime) -> None:
    outcomes[job_id] = max(at, outcomes.get(job_id, at))


def _horizon(versions: list[Row], read_at: datetime) -> datetime:
    """Ends before this have been followed; a paused job keeps what ends from then on."""
    horizon = read_at
    for row in reversed(versions):
        if row["status"] not in ("PAUSED", "DELETED"):
            break
        horizon = row["valid_from"]
    return horizon - SETTLED_WITHIN


def _pending(
    after: Row, ends: dict[UUID, dict[datetime, str]], since: datetime, horizon: datetime
) -> datetime | None:
    """By when enough of its parents have ended for one more fire than those before."""
    counted = _ENDS[after.get("on", "SUCCEEDED")]
    newest = []
    for parent in after["jobs"]:
        own = ends.get(UUID(str(parent)), {})
        times = [at for at, status in own.items() if status in counted and since < at < horizon]
        newest.append(max(times, default=None))
    told = [at for at in newest if at is not None]
    if not told or (after.get("mode", "ALL") == "ALL" and len(told) < len(newest)):
        return None
    return min(told) if after.get("mode", "ALL") == "ALL" else max(told)
