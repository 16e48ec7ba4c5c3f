"""After the faults everything comes to an end, and whoever kills its process delays nobody else."""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from chaos.checker import words
from chaos.checker.claims import REMOTE
from chaos.checker.history import DATABASE, History, Hold
from chaos.checker.owed import SETTLED_WITHIN
from chaos.checker.verdict import Findings
from chaos.facts import Row

# From the last fault on: rescuers watch for an expiry (15 s), then a queue of some hundred drains.
LET_GO_WITHIN: Final = timedelta(seconds=45)
_SILENT: Final = timedelta(seconds=15 + 5)
# By the beginning of their names: jobs that end the process they run in, or hold it for ever.
POISON: Final = ("poison", "deaf", "hanging")
# Whatever single nodes suffer: of workers one always is well, and what runs at once stays below its
# 16 places. It looks into each corner of a queue every 10 s, and drains what waits for it in as
# much again. In 1200 s with faults the longest wait was 22 s, outages of the database and all;
# poison that holds a queue holds it for a minute, the timeout of most jobs.
WAIT_MAX: Final = timedelta(seconds=30)


def check_no_limbo(history: History, findings: Findings) -> None:
    findings.saw(len(history.finals))
    slots: Counter[str] = Counter()
    under_way: Counter[UUID] = Counter()
    for row in history.live.values():
        if row["rank"] is not None:
            slots.update(row["limit_keys"] or ())
        if row["trigger"] in ("SCHEDULE", "AFTER") and row["hold"] != "OVERLAP":
            under_way[row["job_id"]] += 1
    full = {
        row["key"]
        for row in history.facts.limits
        if row["rate_count"] is not None
        or (row["max_running"] is not None and slots[row["key"]] >= row["max_running"])
    }
    for row in history.live.values():
        findings.saw()
        held = row["status"] == "WAITING" and (
            (row["hold"] == "LIMIT" and any(key in full for key in row["limit_keys"] or ()))
            or (row["hold"] == "OVERLAP" and under_way[row["job_id"]])
        )
        title = None if held else _limbo(history, row)
        if title is not None:
            findings.violate(title, [words.execution(row)])
    _check_jobs(history, findings)
    _check_workers(history, findings)


def _limbo(history: History, row: Row) -> str | None:
    read_at, calm_at = history.facts.read_at, history.facts.calm_at
    if row["status"] == "RUNNING":
        policy = history.policy(row)
        seconds = (policy.get("timeout_seconds") or 0) + (policy.get("cancel_grace_seconds") or 0)
        due = max(row["claimed_at"], calm_at) + timedelta(seconds=seconds) + LET_GO_WITHIN
        return "it runs, and nobody ends it" if read_at > due else None
    since = max(row["available_at"], calm_at)
    if read_at - since > LET_GO_WITHIN:
        return f"it is {row['status']} and due, and nothing becomes of it"
    return None


def _check_jobs(history: History, findings: Findings) -> None:
    facts = history.facts
    for job in facts.jobs:
        if job["status"] == "ACTIVE" and job["next_run_at"] is not None:
            findings.saw()
            late = facts.read_at - max(job["next_run_at"], facts.calm_at)
            if late > SETTLED_WITHIN:
                title = f"job {job['name']} is due since {job['next_run_at']}, and nobody fires it"
                findings.violate(title, [f"job {job['id']} shard {job['shard']}"])


def _check_workers(history: History, findings: Findings) -> None:
    facts = history.facts
    for row in facts.workers:
        if row["status"] != "DEAD" and row["id"] != REMOTE:
            findings.saw()
            silent = facts.read_at - max(row["last_heartbeat_at"], facts.calm_at)
            if silent > _SILENT + LET_GO_WITHIN:
                title = f"worker {row['name']} is silent since {row['last_heartbeat_at']}"
                findings.violate(f"{title}, and nobody buries it", [str(row["id"])])
    owned = {row["shard"] for row in facts.shard_leases if row["owner"] is not None}
    findings.saw(len(owned))


def check_poison_isolated(history: History, findings: Findings) -> None:
    """Only waits count as looked at: letters are there in any run."""
    names = {job["id"]: job["name"] for job in history.facts.jobs}
    for row in history.facts.dead_letters:
        if row["reason"] == "POISON" and not row["job_name"].startswith(POISON):
            findings.violate("an innocent is called poison", [words.letter(row)])
    poisonous: dict[str, list[tuple[datetime, datetime]]] = defaultdict(list)
    for hold in _all_holds(history):
        if names.get(hold.claim["job_id"], "").startswith(POISON):
            end = history.facts.read_at if hold.ended is None else hold.ended.committed_at
            poisonous[hold.claim["queue"]].append((hold.claim["claimed_at"], end))
    starts = {queue: sorted(start for start, _ in spans) for queue, spans in poisonous.items()}
    longest = {
        queue: max((end - start for start, end in spans), default=timedelta())
        for queue, spans in poisonous.items()
    }
    for hold in _all_holds(history):
        _check_wait(history, hold, starts, longest, findings)


def _all_holds(history: History) -> Iterator[Hold]:
    for holds in history.holds.values():
        yield from holds


def _check_wait(
    history: History,
    hold: Hold,
    starts: dict[str, list[datetime]],
    longest: dict[str, timedelta],
    findings: Findings,
) -> None:
    """Of what waited in a queue while poison ran there; only the database's own trouble excuses."""
    row = hold.claim
    queued, claimed = row["queued_at"], row["claimed_at"]
    if queued is None or row["queue"] not in starts:
        return
    ran = starts[row["queue"]]
    low, high = queued - longest[row["queue"]], claimed
    if bisect_left(ran, low) == bisect_right(ran, high):
        return
    findings.saw(history.was_spared(queued, claimed, DATABASE))
    if history.longest_calm(queued, claimed, DATABASE) > WAIT_MAX:
        title = f"it waited for {(claimed - queued).total_seconds():.1f} s behind poison"
        findings.violate(title, [words.execution(row), words.change(hold.claimed)])
