"""Jitter spreads the executions of jobs that share an instant; the instant itself stays.

The shift is a hash of job and instant: the same on every node and at every asking, different from
job to job and from day to day. It stays shorter than the way to the job's next instant, so that
executions become available in the order of their instants.
"""

import hashlib
from datetime import datetime, timedelta

from foliot.core.ids import JobId, microseconds
from foliot.core.model import Schedule
from foliot.core.schedule.timeline import TICK


def window(schedule: Schedule, instant: datetime, next_instant: datetime | None) -> timedelta:
    """How long after `instant` the jitter may hold its execution back."""
    jitter = timedelta(seconds=schedule.jitter_seconds)
    return jitter if next_instant is None else min(jitter, next_instant - instant)


def available_at(
    schedule: Schedule, job_id: JobId, instant: datetime, next_instant: datetime | None
) -> datetime:
    """When the execution of `instant` may start: in [instant, instant + window)."""
    length = window(schedule, instant, next_instant) // TICK
    if length <= 1:
        return instant
    digest = hashlib.blake2b(job_id.bytes, digest_size=8, person=b"foliot-jitter")
    digest.update(b"%d" % microseconds(instant))
    return instant + timedelta(microseconds=int.from_bytes(digest.digest(), "big") % length)
