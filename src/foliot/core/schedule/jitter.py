"""Jitter spreads the executions of jobs that share an instant; the instant itself stays.

The shift is a hash of job and instant: the same on every node and at every asking, different from
job to job and from day to day. It stays shorter than the way to the job's next instant, so that
executions become available in the order of their instants.
"""

import hashlib
from datetime import datetime, timedelta

from foliot.core.ids import JobId, microseconds
from foliot.core.model import Schedule


def available_at(
    schedule: Schedule, job_id: JobId, instant: datetime, next_instant: datetime | None
) -> datetime:
    """When the execution of `instant` may start: in [instant, instant + jitter)."""
    window = round(schedule.jitter_seconds * 1_000_000)
    if next_instant is not None:
        window = min(window, microseconds(next_instant) - microseconds(instant))
    if window <= 1:
        return instant
    digest = hashlib.blake2b(job_id.bytes, digest_size=8, person=b"foliot-jitter")
    digest.update(b"%d" % microseconds(instant))
    return instant + timedelta(microseconds=int.from_bytes(digest.digest(), "big") % window)
