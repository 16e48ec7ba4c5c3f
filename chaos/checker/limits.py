"""Never more at once than a limit allows, and never more starts within a time than a rate does.

What runs at once is counted in the order of the log's numbers: whoever lets something go under a
limit has seen what ended before, and that has a lower number. It is counted under the keys on its
row, so whatever starts must have those that its job's definition asks for.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from chaos.checker import words
from chaos.checker.history import History, either, is_claim
from chaos.checker.verdict import Findings
from chaos.facts import Change, Row

_SHOWN: Final = 12


def check_limits_held(history: History, findings: Findings) -> None:
    most = _limits(history)
    most |= _queue_limits(history)
    since = _limited_since(history)
    asked = _asked_for(history)
    running: dict[str, dict[UUID, Change]] = defaultdict(dict)
    holding: dict[UUID, tuple[str, ...]] = {}
    for change in sorted(history.facts.execution_changes, key=lambda one: one.number):
        row = either(change)
        if change.new is None or change.new["status"] != "RUNNING":
            for key in holding.pop(row["id"], ()):
                running[key].pop(row["id"], None)
        elif is_claim(change):
            _check_named(asked.get(row["job_id"], ()), change, findings)
            keys = tuple(key for key in _keys(row, change.committed_at > since) if key in most)
            holding[row["id"]] = keys
            for key in keys:
                findings.saw()
                running[key][row["id"]] = change
                if len(running[key]) > most[key]:
                    title = f"{len(running[key])} ran at once under {key}, at most {most[key]} may"
                    shown = list(running[key].values())[-_SHOWN:]
                    findings.violate(title, map(words.change, shown))


def _asked_for(history: History) -> dict[UUID, tuple[str, ...]]:
    """How the keys begin that the executions of each job must have. Only of jobs whose versions all
    ask for the same: with a change, those that wait are given other keys."""
    return {
        job_id: _beginnings(job_id, versions[0]["definition"])
        for job_id, versions in history.versions.items()
        if len({repr(_said(row["definition"])) for row in versions}) == 1
    }


def _said(definition: Row) -> tuple[object, ...]:
    return definition.get("concurrency"), definition.get("rate_limit")


def _beginnings(job_id: UUID, definition: Row) -> tuple[str, ...]:
    """As `foliot.core.limits.key_text` writes them: `job:ID` and `key:TENANT:KEY`. A rate has the
    job's own; a key may be that of the request instead."""
    concurrency = definition.get("concurrency") or {}
    is_limited = concurrency.get("limit") is not None
    is_keyed = is_limited and concurrency.get("key") is not None
    is_rated = (definition.get("rate_limit") or {}).get("count") is not None
    wanted = [f"job:{job_id}"] if is_rated or (is_limited and not is_keyed) else []
    return (*wanted, "key:") if is_keyed else tuple(wanted)


def _check_named(wanted: Iterable[str], change: Change, findings: Findings) -> None:
    keys: Iterable[str] = either(change)["limit_keys"] or ()
    for beginning in wanted:
        if not any(key.startswith(beginning) for key in keys):
            title = f"it started without the limit {beginning} that its job asks for"
            findings.violate(title, [words.change(change), f"its limits are {keys}"])


def _keys(row: Row, with_queue: bool) -> Iterator[str]:
    yield from row["limit_keys"] or ()
    if with_queue:
        yield f"queue:{row['queue']}"


def _queue_limits(history: History) -> dict[str, int]:
    return {
        f"queue:{row['name']}": row["concurrency_limit"]
        for row in history.facts.queues
        if row["concurrency_limit"] is not None
    }


def _limited_since(history: History) -> datetime:
    """What a queue's claims took before it had a limit does not count."""
    told = [
        history.at(one.answered)
        for one in history.facts.exchanges
        if one.action == "limit queue" and one.answered is not None
    ]
    return max(told, default=history.facts.began_at)


def _limits(history: History) -> dict[str, int]:
    """Of each key the highest that was ever set: a lower one stops nothing that runs."""
    most: dict[str, int] = {}
    for row in history.facts.limits:
        if row["max_running"] is not None:
            most[row["key"]] = max(row["max_running"], most.get(row["key"], 0))
    for row in history.facts.job_versions:
        wanted = row["definition"].get("concurrency") or {}
        key = f"job:{row['job_id']}"
        if wanted.get("limit") is not None and wanted.get("key") is None and key in most:
            most[key] = max(most[key], wanted["limit"])
    return most


def check_rates_held(history: History, findings: Findings) -> None:
    starts: dict[str, list[tuple[datetime, UUID]]] = defaultdict(list)
    rates = dict(_rates(history))
    for id_, holds in history.holds.items():
        for hold in holds:
            for key in hold.claim["limit_keys"] or ():
                if key in rates:
                    starts[key].append((hold.claim["claimed_at"], id_))
    for key, found in starts.items():
        count, period = rates[key]
        findings.saw(len(found))
        found.sort()
        for first, last in zip(found, found[count:], strict=False):
            if last[0] - first[0] < period:
                title = f"more than {count} starts of {key} within {period}"
                findings.violate(title, _shown(found, first[0], last[0]))
                break
    _check_noted(history, starts, findings)


def _rates(history: History) -> Iterator[tuple[str, tuple[int, timedelta]]]:
    """Those that were never changed: of others nobody knows from when on they counted."""
    changed: dict[str, set[str]] = defaultdict(set)
    for row in history.facts.job_versions:
        changed[f"job:{row['job_id']}"].add(repr(row["definition"].get("rate_limit")))
    for row in history.facts.limits:
        if row["rate_count"] is not None and len(changed[row["key"]]) <= 1:
            yield row["key"], (row["rate_count"], timedelta(seconds=row["rate_seconds"]))


def _shown(found: Iterable[tuple[datetime, UUID]], low: datetime, high: datetime) -> Iterator[str]:
    return (f"start of {id_} at {words.moment(at)}" for at, id_ in found if low <= at <= high)


def _check_noted(
    history: History, starts: dict[str, list[tuple[datetime, UUID]]], findings: Findings
) -> None:
    """Every start under a rate is noted for it, with the time of its claim."""
    noted: Counter[tuple[str, datetime]] = Counter()
    for row in history.facts.rate_starts:
        noted[row["key"], row["at"]] += row["started"]
    for key, found in starts.items():
        claimed = Counter(at for at, _ in found)
        for at, count in claimed.items():
            if noted[key, at] < count:
                title = f"{count} starts of {key} at {at}, and {noted[key, at]} of them are noted"
                findings.violate(title, _shown(found, at, at))
