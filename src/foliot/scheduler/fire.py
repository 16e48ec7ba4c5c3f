"""What is staged is fired when it is due: by the database's clock, none early, a batch at a time.

Two batches are under way at once: while the database works on one, the next is made ready. A batch
without an answer is fired again as it was; whatever was done is then passed over. A job that comes
again within the window is staged anew from what we know of it, without a look at the database.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from foliot.runtime.clock import Clock
from foliot.runtime.server_time import ServerTime
from foliot.scheduler.firing import BATCH, FiredBatch, Firing
from foliot.scheduler.stage import AHEAD
from foliot.scheduler.staged import Entry, Staged
from foliot.store.firing import JobFire
from foliot.store.staging import DueJob

UNDER_WAY: Final = 2
# Passes begin this far apart: jobs due within it are one batch. A call costs 2 ms, a job 0.03 ms.
SPACING_SECONDS: Final = 0.01
# The database's clock may be set while we wait.
WAIT_SECONDS_MAX: Final = 1.0


@dataclass(frozen=True, slots=True)
class FirePass:
    fired: int = 0
    skipped: int = 0
    passed_over: int = 0
    refused: int = 0

    def __add__(self, other: "FirePass") -> "FirePass":
        return FirePass(
            self.fired + other.fired,
            self.skipped + other.skipped,
            self.passed_over + other.passed_over,
            self.refused + other.refused,
        )


class Fire:
    name: Final = "fire"

    def __init__(self, clock: Clock, time: ServerTime, staged: Staged, firing: Firing) -> None:
        self._clock = clock
        self._time = time
        self._staged = staged
        self._firing = firing
        self._began = float("-inf")
        self._batch = BATCH  # half of it after a failure: what takes too long may be too much
        self.pause_seconds = 0.0

    async def wait(self) -> None:
        """Until something may be due."""
        spacing = self._began + SPACING_SECONDS - self._clock.monotonic()
        if spacing > 0:
            await self._clock.sleep(spacing)
        due = self._staged.next_due
        seconds = WAIT_SECONDS_MAX if due is None else self._time.seconds_until_past(due)
        if seconds > 0:
            await self._staged.earlier.wait(min(seconds, WAIT_SECONDS_MAX), self._clock)

    async def run_once(self, now: datetime | None = None) -> FirePass:
        """Fire all that is due by now; what becomes of it is decided batch by batch."""
        self._began = self._clock.monotonic()
        moment = now or self._time.past()
        passes = await asyncio.gather(
            *(self._fire_batches(moment, now) for _ in range(UNDER_WAY)), return_exceptions=True
        )
        total = FirePass()
        for one in passes:
            if isinstance(one, BaseException):
                raise one
            total += one
        return total

    async def _fire_batches(self, moment: datetime, now: datetime | None) -> FirePass:
        total = FirePass()
        while taken := self._staged.take_due(moment, self._batch):
            past, as_of = now or self._time.past(), now or self._time.future()
            entries, fires = self._settle(taken, past)
            try:
                batch = await self._firing.send(fires, as_of, now=now)
            except BaseException:
                self._staged.put_back(entries)
                self._batch = max(1, self._batch // 2)
                raise
            self._batch = min(BATCH, self._batch * 2)
            self._staged.land(entries, _following(entries, batch, past))
            total += _count(batch)
        return total

    def _settle(
        self, taken: Sequence[Entry], moment: datetime
    ) -> tuple[Sequence[Entry], Sequence[JobFire]]:
        """As many of them as one call can take. The others wait as before, and fewer are taken
        next time: each that is put back is made ready once more."""
        settled = self._firing.settle(((entry.due.job_id, entry.settle) for entry in taken), moment)
        if settled.jobs < len(taken):
            self._staged.put_back(taken[settled.jobs :])
            self._batch = settled.jobs
        return taken[: settled.jobs], settled.fires


def _count(batch: FiredBatch) -> FirePass:
    report = batch.report
    return FirePass(
        sum(one.fired for one in report.applied),
        sum(one.skipped for one in report.applied),
        len(report.passed_over),
        len(report.refused),
    )


def _following(entries: Sequence[Entry], batch: FiredBatch, now: datetime) -> Iterator[DueJob]:
    """The jobs that are due again before the window would bring them."""
    soon, applied = now + AHEAD, batch.applied
    fires = {
        fire.job_id: fire
        for fire in batch.sent
        if fire.next_run_at is not None and fire.next_run_at < soon
    }
    for due in (entry.due for entry in entries if fires):
        fire, fired = fires.get(due.job_id), applied.get(due.job_id)
        if fire and fired and fire.next_instant and fire.next_run_at:
            count = due.facts.fired_count + fired.fired
            yield replace(
                due,
                expected=fire.next_instant,
                next_run_at=fire.next_run_at,
                facts=replace(due.facts, fired_count=count),
            )
