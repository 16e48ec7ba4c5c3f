"""What must be true of the tables whatever happened, read from the tables alone.

The model is not asked: a mistake that model and store share does not get past here.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime
from itertools import groupby, pairwise
from typing import Final

from foliot.core.ids import ExecutionId, JobId
from foliot.core.schedule.occurrences import BEGINNING, ScheduleFacts, timeline
from foliot.core.states import ExecutionState
from foliot.store.definitions import schedule_from_json
from foliot.testing.model.tables import Columns, Tables

_RUNNING: Final = ExecutionState.RUNNING.value
_FAILED: Final = {ExecutionState.FAILED.value, ExecutionState.TIMED_OUT.value}


def broken(before: Tables, after: Tables) -> list[str]:
    """Each promise that does not hold after a step, in words; none is as it should be."""
    return [
        *_identity(after),
        *_fences(before, after),
        *_attempts(after),
        *_times(after),
        *_slots(before, after),
        *_ledger(after),
    ]


def _identity(tables: Tables) -> Iterator[str]:
    """An execution is live or over, and over once; only what failed has a dead letter."""
    ends = Counter(row["id"] for row in tables.history if row["final"])
    yield from (f"{each} ended {n} times" for each, n in ends.items() if n > 1)
    yield from (f"{each} is live and over" for each in ends.keys() & tables.live.keys())
    failed = {row["id"] for row in tables.history if row["final"] and row["status"] in _FAILED}
    yield from (
        f"{each} has a dead letter and did not fail" for each in tables.dead.keys() - failed
    )
    known = tables.live.keys() | ends.keys()
    lost = {row["id"] for row in tables.history} - known
    yield from (f"{each} has attempts and is nowhere" for each in lost)


def _fences(before: Tables, after: Tables) -> Iterator[str]:
    """Each claim has a fence of its own, above all earlier ones."""
    for each, row in after.live.items():
        old = before.live.get(each)
        if old is None:
            continue
        changed_hands = row["worker_id"] is not None and row["worker_id"] != old["worker_id"]
        if row["fence"] < old["fence"] + changed_hands:
            yield f"the fence of {each} went from {old['fence']} to {row['fence']}"
    written = Counter((row["id"], row["fence"], row["final"]) for row in after.history)
    yield from (f"{key} was written {n} times" for key, n in written.items() if n > 1)
    for row in after.history:
        live = after.live.get(row["id"])
        if live is not None and row["fence"] > live["fence"] - (live["status"] == _RUNNING):
            yield f"{row['id']} has an attempt under fence {row['fence']} and stands below it"


def _attempts(tables: Tables) -> Iterator[str]:
    """What counts as an attempt has left a row, or is running, or ended the execution."""
    tried = Counter(row["id"] for row in tables.history if not row["final"])
    for each, row in tables.live.items():
        expected = tried[each] + (row["status"] == _RUNNING)
        if row["attempt_number"] != expected:
            yield f"{each} counts {row['attempt_number']} attempts and had {expected}"
    for row in tables.history:
        expected = tried[row["id"]] + (row["worker_id"] is not None)
        if row["final"] and row["attempt_number"] != expected:
            yield f"{row['id']} ended after {row['attempt_number']} attempts and had {expected}"


def _times(tables: Tables) -> Iterator[str]:
    """Nothing starts before its time, and only what may run has a rank."""
    for row in (*tables.live.values(), *tables.history):
        if row["claimed_at"] is not None and row["claimed_at"] < row["available_at"]:
            yield f"{row['id']} was claimed before it was available"
    for each, row in tables.live.items():
        if row["status"] == _RUNNING and row["rank"] is None:
            yield f"{each} runs without a rank"


def _slots(before: Tables, after: Tables) -> Iterator[str]:
    """No more than the limit hold a slot; a lowered limit lets those who have one keep it."""
    had, have = _holders(before), _holders(after)
    for key, most in after.limits.items():
        if have[key] > max(most, had[key]):
            yield f"{have[key]} hold a slot of {key}, which has {most}"


def _holders(tables: Tables) -> Counter[str]:
    ranked = (row for row in tables.live.values() if row["rank"] is not None)
    return Counter(key for row in ranked for key in row["limit_keys"] or ())


def _ledger(tables: Tables) -> Iterator[str]:
    """Every instant that a job's versions say it had up to where it is settled was fired or
    skipped, and none was both or twice."""
    fired: defaultdict[JobId, set[tuple[ExecutionId, datetime]]] = defaultdict(set)
    skips: defaultdict[JobId, list[Columns]] = defaultdict(list)
    for each in (*tables.live.values(), *tables.history):
        if each["trigger"] == "SCHEDULE":
            fired[each["job_id"]].add((each["id"], each["scheduled_time"]))
    for skip in tables.skips:
        skips[skip["job_id"]].append(skip)
    for job_id, versions in groupby(tables.versions, lambda row: JobId(row["job_id"])):
        job = tables.jobs[job_id]
        spans = [(at, at) for _, at in fired[job_id]]
        spans += [(skip["from_instant"], skip["to_instant"]) for skip in skips[job_id]]
        expected = _expected(job_id, list(versions), job["last_instant"], [to for _, to in spans])
        settled = len(fired[job_id]) + sum(skip["count"] for skip in skips[job_id])
        if settled != expected:
            yield f"job {job_id}: {settled} instants are settled of {expected}"
        for (_, end), (start, _) in pairwise(sorted(spans)):
            if end >= start:
                yield f"job {job_id}: {start} was settled twice"


def _expected(
    job_id: JobId, versions: list[Columns], until: datetime | None, settled: list[datetime]
) -> int:
    """How many instants lie before `until`, each counted under the schedule that was in force.

    A schedule of so many runs is over with the last of them, which no version tells.
    """
    if until is None:
        return 0
    periods = [list(rows) for _, rows in groupby(versions, lambda row: row["schedule_version"])]
    begins = [BEGINNING, *(rows[0]["valid_from"] for rows in periods[1:])]
    total = 0
    for rows, begin, next_begin in zip(periods, begins, [*begins[1:], until], strict=True):
        schedule = schedule_from_json(json.loads(rows[0]["definition ->> 'schedule'"]))
        counted_from = datetime.fromisoformat(rows[0]["definition ->> 'counted_from'"])
        end = min(next_begin, until)
        if schedule.max_runs is not None:
            end = max((at for at in settled if at <= end), default=begin)
        if begin < end:
            total += timeline(schedule, ScheduleFacts(job_id, counted_from)).count(begin, end)
    return total
