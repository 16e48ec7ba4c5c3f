"""The arrays of the call that fires, back to the jobs they were made of.

Whatever is as usual travels as null, see `foliot.store.firing`.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from chaos.simulation.store import SimulatedStore
from foliot.core.model import SkipReason
from foliot.core.schedule.timeline import Skip
from foliot.store.firing import Fire, JobFire


def fires_of(store: SimulatedStore, columns: Sequence[Any]) -> list[JobFire]:
    queues, _, job_ids, own_queues, expected, versions, nexts, runs, settled, left = columns[:10]
    fires, skips = _fires(expected, columns[12:17]), _skips(columns[17:22])
    batch = []
    for place, job_id in enumerate(job_ids):
        next_instant = _at(nexts, place)
        batch.append(
            JobFire(
                job_id,
                store.jobs[job_id].job.tenant_id,
                _at(own_queues, place) or queues[0],
                expected[place],
                versions[place],
                tuple(fires[place + 1]),
                tuple(skips[place + 1]),
                _at(settled, place) or expected[place],
                next_instant,
                _at(runs, place) or next_instant,
                _at(left, place),
                columns[23],
                _at(columns[11], place),
            )
        )
    return batch


def _fires(expected: Sequence[datetime], columns: Sequence[Any]) -> dict[int, list[Fire]]:
    numbers, _, ids, instants, ats = columns
    found: defaultdict[int, list[Fire]] = defaultdict(list)
    for row, execution_id in enumerate(ids):
        number = _at(numbers, row) or row + 1
        instant = _at(instants, row) or expected[number - 1]
        found[number].append(Fire(execution_id, instant, _at(ats, row) or instant))
    return found


def _skips(columns: Sequence[Any]) -> dict[int, list[Skip]]:
    found: defaultdict[int, list[Skip]] = defaultdict(list)
    for number, first, last, count, reason in zip(*columns, strict=True):
        found[number].append(Skip(first, last, count, SkipReason(reason)))
    return found


def _at(column: Sequence[Any] | None, place: int) -> Any:  # noqa: ANN401 - of any column
    return None if column is None else column[place]
