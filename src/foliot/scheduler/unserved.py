"""What nobody is there to run is said: a number for alerts, and a line a minute for each lane.

It waits without being in anybody's way, so nothing else would show that it will not run.
"""

import logging
from collections import Counter
from datetime import datetime
from typing import Final

from foliot.core.phrases import join
from foliot.core.serving import Lane
from foliot.runtime.clock import Clock
from foliot.runtime.metrics import UNSERVED
from foliot.store.database import Database
from foliot.store.unserved import COUNT_MAX, UnservedLane, list_unserved

log = logging.getLogger(__name__)

PAUSE_SECONDS: Final = 10.0
LINE_SECONDS: Final = 60.0


class WatchLanes:
    name: Final = "watch lanes"

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._told_at: dict[Lane, float] = {}
        self.pause_seconds = PAUSE_SECONDS

    async def run_once(self, now: datetime | None = None) -> tuple[UnservedLane, ...]:
        found = await list_unserved(self._database, now)
        waiting: Counter[str] = Counter()
        for each in found:
            waiting[each.lane.queue] += each.waiting
        UNSERVED.clear()
        for queue, number in waiting.items():
            UNSERVED.labels(queue).set(number)
        self._tell(found)
        return found

    def _tell(self, found: tuple[UnservedLane, ...]) -> None:
        moment = self._clock.monotonic()
        self._told_at = {
            lane: told for lane, told in self._told_at.items() if moment - told < LINE_SECONDS
        }
        for each in found:
            if each.lane not in self._told_at:
                self._told_at[each.lane] = moment
                log.warning("%s", words(each))


def words(unserved: UnservedLane) -> str:
    """Where to ask what is missing stands at the end."""
    lane = unserved.lane
    parts = [f"queue {lane.queue}"]
    if lane.region is not None:
        parts.append(f"region {lane.region}")
    if lane.requires:
        parts.append(f"labels {', '.join(lane.requires)}")
    parts.append(f"handler {lane.handler}" if lane.handler else f"{lane.target_type} targets")
    number = f"{unserved.waiting}" if unserved.waiting < COUNT_MAX else f"{COUNT_MAX} or more"
    return (
        f"no live worker serves {join(parts)}: {number} waiting;"
        f" see GET /v1/executions/{unserved.first}/explain"
    )
