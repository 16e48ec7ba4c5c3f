"""Waiting rows become claimable: when their time comes, when their predecessor is over, when a
limit has room.

Each is a trade of its own, so that a long walk over held rows keeps no delayed one waiting. Any
number of schedulers do this at once: what one has let go is no longer there for the others.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from foliot.runtime.clock import Clock
from foliot.runtime.metrics import EXECUTIONS_RELEASED
from foliot.store import admitting, releasing
from foliot.store.admitting import Place, admit_held
from foliot.store.database import Database
from foliot.store.releasing import next_release_seconds, release_due, release_overlaps

# A row that was written during the pause waits no longer than this.
PAUSE_SECONDS: Final = 0.2
# Once in a while everything is looked at, also what came late below the lower bound.
WIDE_LOOK_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Released:
    """What one pass let go. `held` were due and went to wait for a slot."""

    released: int
    held: int = 0


class Release:
    """Rows whose time has come. The pause ends when the next one is due."""

    name: Final = "release"

    def __init__(self, database: Database, clock: Clock, batch: int = releasing.BATCH) -> None:
        self._database = database
        self._clock = clock
        self._batch = batch
        self._low: datetime | None = None
        self._looked_wide_at = float("-inf")
        self.pause_seconds = 0.0

    async def run_once(self, now: datetime | None = None) -> Released:
        """Until a batch is not full."""
        low, began = self._low, self._clock.monotonic()
        wide = low is None or began - self._looked_wide_at >= WIDE_LOOK_SECONDS
        released = held = 0
        while True:
            batch = await release_due(
                self._database, None if wide else low, batch=self._batch, now=now
            )
            released += batch.released
            held += batch.held
            EXECUTIONS_RELEASED.inc(batch.released)
            # A batch that is full and yet let nothing go is another scheduler's work.
            if batch.seen < self._batch or not batch.released + batch.held:
                break
        if batch.seen < self._batch:
            self._low = batch.low
            self._looked_wide_at = began if wide else self._looked_wide_at
        wait = await next_release_seconds(self._database, batch.moment, now)
        self.pause_seconds = PAUSE_SECONDS if wait is None else min(max(wait, 0.0), PAUSE_SECONDS)
        return Released(released, held)


class ReleaseOverlaps:
    """Executions that waited for an earlier one of their job to end."""

    name: Final = "release overlaps"

    def __init__(self, database: Database, clock: Clock, jobs: int = releasing.JOBS) -> None:
        self._database = database
        self._clock = clock
        self._jobs = jobs
        self.pause_seconds = PAUSE_SECONDS

    async def run_once(self, now: datetime | None = None) -> Released:
        """One walk over all jobs that hold some, to its end."""
        began = self._clock.monotonic()
        page = await release_overlaps(self._database, jobs=self._jobs, now=now)
        released = len(page.released)
        while page.after is not None:
            page = await release_overlaps(self._database, page.after, jobs=self._jobs, now=now)
            released += len(page.released)
        EXECUTIONS_RELEASED.inc(released)
        self.pause_seconds = half_time(self._clock.monotonic() - began)
        return Released(released)


class Admit:
    """Executions that waited for a slot under a limit."""

    name: Final = "admit"

    def __init__(self, database: Database, clock: Clock, batch: int = admitting.BATCH) -> None:
        self._database = database
        self._clock = clock
        self._batch = batch
        self.pause_seconds = PAUSE_SECONDS

    async def run_once(self, now: datetime | None = None) -> Released:
        """One walk over all limits that hold some, to its end; a full page is looked at again."""
        began, released = self._clock.monotonic(), 0
        place: Place | None = None
        while True:
            page = await admit_held(self._database, place, batch=self._batch, now=now)
            released += len(page.admitted)
            EXECUTIONS_RELEASED.inc(len(page.admitted))
            if len(page.admitted) >= self._batch:
                continue
            if page.after is None:
                break
            place = page.after
        self.pause_seconds = half_time(self._clock.monotonic() - began)
        return Released(released)


def half_time(took_seconds: float) -> float:
    """A walk that takes long is not begun again at once: it may take half of the time."""
    return max(PAUSE_SECONDS, took_seconds)
