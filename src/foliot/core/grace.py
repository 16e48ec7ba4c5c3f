"""How long to trust silence: after an outage everybody looks dead who could not reach the database.

Whoever judges others by their silence must have watched for one whole expiry without a break:
whoever lives has been heard again by then. A break is an answer that did not come, or a gap between
two answers (of the watcher's own time, when it was frozen; of the database's, when its clock was
set). A watcher that has just started knows nothing of what was before, so it waits as well.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

EXPIRY_SECONDS: Final = 15.0
# Five passes of a watcher that looks once a second.
GAP_SECONDS_MAX: Final = 5.0


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer of the database: when it came by the watcher's own monotonic clock, and what time
    the database said it was."""

    felt_seconds: float
    told: datetime


@dataclass(frozen=True, slots=True)
class Watch:
    """Answers without a break, from the first to the latest."""

    first: Reading
    latest: Reading


def watch_on(watch: Watch | None, reading: Reading) -> Watch:
    """The watch after one more answer, or a new one after a break."""
    if watch is None or _is_gap(watch.latest, reading):
        return Watch(reading, reading)
    return Watch(watch.first, reading)


def may_judge(watch: Watch | None, expiry_seconds: float = EXPIRY_SECONDS) -> bool:
    """Whether who is silent now has been silent while the database could hear."""
    if watch is None:
        return False
    return watch.latest.felt_seconds - watch.first.felt_seconds >= expiry_seconds


def _is_gap(before: Reading, after: Reading) -> bool:
    most = timedelta(seconds=GAP_SECONDS_MAX)
    felt = after.felt_seconds - before.felt_seconds
    return felt > GAP_SECONDS_MAX or not -most <= after.told - before.told <= most
