"""Waiting rows become claimable: when their time comes, when their predecessor is over, when a
limit has room.

Each is a trade of its own, so that a long walk over held rows keeps no delayed one waiting. Any
number of schedulers do this at once: what one has let go is no longer there for the others.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from foliot.core.ids import JobId
from foliot.runtime.clock import Clock
from foliot.runtime.metrics import EXECUTIONS_RELEASED
from foliot.scheduler.wide_look import WideLook
from foliot.store import admitting, releasing
from foliot.store.admitting import Place, admit_held
from foliot.store.database import Database
from foliot.store.releasing import (
    ReleaseReport,
    next_release_seconds,
    release_due,
    release_overlaps,
)
from foliot.transport.port import SILENCE, Matter, Publisher

# A row that was written during the pause waits no longer than this.
PAUSE_SECONDS: Final = 0.2
# Starts leave a rate one by one; those that do within this are let go together.
OPENING_SECONDS_MIN: Final = 0.01
# A call for each place where a walk was cut off, of about a millisecond while the limit stays full.
CUT_OFF_MAX: Final = 50


@dataclass(frozen=True, slots=True)
class Released:
    """What one pass let go. `held` were due and went to wait for a slot."""

    released: int
    held: int = 0


class Release:
    """Rows whose time has come. The pause ends when the next one is due."""

    name: Final = "release"

    def __init__(
        self,
        database: Database,
        clock: Clock,
        batch: int = releasing.BATCH,
        hints: Publisher = SILENCE,
    ) -> None:
        self._database = database
        self._clock = clock
        self._hints = hints
        self._batch = batch
        self._wide = WideLook(database, clock)
        self.pause_seconds = 0.0

    async def run_once(self, now: datetime | None = None) -> Released:
        """Until a batch is not full."""
        low = await self._wide.low(now)
        released = held = 0
        while True:
            batch = await release_due(self._database, low, batch=self._batch, now=now)
            released += batch.released
            held += batch.held
            EXECUTIONS_RELEASED.inc(batch.released)
            tell_of_release(self._hints, batch)
            # A batch that is full and yet let nothing go is another scheduler's work.
            if batch.seen < self._batch or not batch.released + batch.held:
                break
        if batch.seen < self._batch:
            self._wide.done(batch.low)
        elif low is None:
            self._wide.again()
        wait = await next_release_seconds(self._database, batch.moment, now)
        self.pause_seconds = PAUSE_SECONDS if wait is None else min(max(wait, 0.0), PAUSE_SECONDS)
        return Released(released, held)


class ReleaseOverlaps:
    """Executions that waited for an earlier one of their job to end."""

    name: Final = "release overlaps"

    def __init__(
        self,
        database: Database,
        clock: Clock,
        jobs: int = releasing.JOBS,
        hints: Publisher = SILENCE,
    ) -> None:
        self._database = database
        self._clock = clock
        self._hints = hints
        self._jobs = jobs
        self.pause_seconds = PAUSE_SECONDS

    async def run_once(self, now: datetime | None = None) -> Released:
        """One walk over all jobs that hold some, to its end."""
        began = self._clock.monotonic()
        released = 0
        place: JobId | None = None
        while True:
            page = await release_overlaps(self._database, place, jobs=self._jobs, now=now)
            released += len(page.released)
            if page.released:
                self._hints.publish(Matter.WORK, page.queues)
            if page.after is None:
                break
            place = page.after
        EXECUTIONS_RELEASED.inc(released)
        self.pause_seconds = half_time(self._clock.monotonic() - began)
        return Released(released)


class Admit:
    """Executions that waited for a slot under a limit. The pause ends when a rate has room.

    A page of lists is looked at together. Where more lists than that wait under one limit, the
    first page may take each slot that comes free; so the next walk gives it out where the last one
    was cut off, and begins anew under that limit once it has come to the end. Each scheduler
    remembers that for itself: what is forgotten costs a round and nobody his turn for ever.
    """

    name: Final = "admit"

    def __init__(
        self,
        database: Database,
        clock: Clock,
        batch: int = admitting.BATCH,
        hints: Publisher = SILENCE,
    ) -> None:
        self._database = database
        self._clock = clock
        self._hints = hints
        self._batch = batch
        # By the first keys of lists, of which the last is of a full limit: where to go on there.
        self._cut_off: dict[tuple[str, ...], Place] = {}
        self._opens_in = PAUSE_SECONDS
        self.pause_seconds = PAUSE_SECONDS

    async def run_once(self, now: datetime | None = None) -> Released:
        """One walk over all limits that hold some, to its end; before it, where the last one was
        cut off."""
        began, released = self._clock.monotonic(), 0
        self._opens_in = PAUSE_SECONDS
        # They go to the end when they are cut off again: the others have their turn in the next.
        for keys in tuple(self._cut_off)[:CUT_OFF_MAX]:
            released += await self._walk(self._cut_off.pop(keys), len(keys), now)
        released += await self._walk(None, None, now)
        took = self._clock.monotonic() - began
        self.pause_seconds = max(
            OPENING_SECONDS_MIN, self._opens_in, took if took > PAUSE_SECONDS else 0.0
        )
        return Released(released)

    async def _walk(self, place: Place | None, within: int | None, now: datetime | None) -> int:
        """To the end, or to that of the lists which have their first keys in common with `place`.

        A full page is looked at again, and then the walk goes on behind its first look: the second
        leaps over what the first has filled.
        """
        released = 0
        after, is_again = place, False
        while True:
            page = await admit_held(
                self._database, place, within=within, batch=self._batch, now=now
            )
            released += len(page.admitted)
            EXECUTIONS_RELEASED.inc(len(page.admitted))
            if page.admitted:
                self._hints.publish(Matter.WORK, page.queues)
            if page.opens_in_seconds is not None:
                self._opens_in = min(self._opens_in, page.opens_in_seconds)
            if place is not None and page.cut is not None and not is_again:
                self._cut_off.setdefault(place.keys[: max(page.cut, within or 0)], place)
            after = after if is_again else page.after
            is_again = len(page.admitted) >= self._batch
            if is_again:
                continue
            if after is None:
                return released
            place = after


def tell_of_release(hints: Publisher, batch: ReleaseReport) -> None:
    """Workers of what they may claim; and those who give out slots, of what waits for one."""
    if batch.released:
        hints.publish(Matter.WORK, batch.queues)
    if batch.held:
        hints.publish(Matter.ADMIT)


def half_time(took_seconds: float) -> float:
    """A walk that takes long is not begun again at once: it may take half of the time."""
    return max(PAUSE_SECONDS, took_seconds)
