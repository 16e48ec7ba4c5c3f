"""Lanes come into being with the first job that needs them, and stay.

A worker claims by lane: what it cannot run is never in its way.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from foliot.core.model import HandlerTarget, Job
from foliot.store.database import Database
from foliot.store.definitions import target_type
from foliot.store.statements import statement
from foliot.store.workers import WorkerProfile

_PUT_LANE: Final = statement("lanes/put_lane")
_READ_LANE: Final = statement("lanes/read_lane")
_LIST_SERVABLE: Final = statement("lanes/list_servable")


async def lane_of(database: Database, job: Job) -> int:
    """The lane of what this job runs: queue, region, required labels and handler.

    Made in a transaction of its own: jobs that are saved at once need not wait for each other.
    """
    handler = job.target.name if isinstance(job.target, HandlerTarget) else None
    lane = (job.queue, job.region, sorted(job.requires), str(target_type(job.target)), handler)
    found = await database.fetch_value(_READ_LANE, *lane)
    if found is None:
        await database.execute(_PUT_LANE, *lane)
        found = await database.fetch_value(_READ_LANE, *lane)
    return int(found)


async def list_servable(database: Database, profile: WorkerProfile) -> Mapping[str, Sequence[int]]:
    """By queue, the lanes that a worker with this profile can serve."""
    rows = await database.fetch(
        _LIST_SERVABLE,
        list(profile.queues),
        profile.region,
        list(profile.labels),
        list(profile.handlers),
        [str(each) for each in profile.target_types],
    )
    found: dict[str, list[int]] = {}
    for row in rows:
        found.setdefault(row["queue"], []).append(row["id"])
    return found
