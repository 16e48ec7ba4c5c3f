"""Many jobs fired at once: what both the owner of a shard and those who sweep it do.

A job that cannot be settled or that the server refuses is told about, counted, and left alone for
ten seconds: it keeps nobody else waiting, and nobody busy.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from foliot.core.ids import JobId
from foliot.core.schedule.timeline import TICK
from foliot.runtime.metrics import FIRE_ERRORS, INSTANTS_SKIPPED, JOBS_TRIGGERED, TRIGGER_DELAY
from foliot.store.database import Database
from foliot.store.firing import ROWS_AT_ONCE, Fired, FireReport, JobFire, fire_batch
from foliot.store.staging import DuePage, stage_page
from foliot.transport.port import SILENCE, Matter, Publisher

log = logging.getLogger(__name__)

BATCH: Final = 1000
REFUSED_FOR: Final = timedelta(seconds=10)


class Refusals:
    """Jobs that could not be fired, and until when they are left alone."""

    def __init__(self) -> None:
        self._until: dict[JobId, datetime] = {}
        self._tidy_at: datetime | None = None

    def stands(self, job_id: JobId, now: datetime) -> bool:
        until = self._until.get(job_id)
        return until is not None and now < until <= now + REFUSED_FOR

    def standing(self, now: datetime) -> list[JobId]:
        """Those that are left alone now."""
        return [job_id for job_id in self._until if self.stands(job_id, now)]

    def refuse(self, job_id: JobId, now: datetime, error: Exception) -> None:
        """Told and counted, and left alone from now on."""
        FIRE_ERRORS.inc()
        log.error("job %s cannot be fired: %s", job_id, error)
        if self._tidy_at is None or now >= self._tidy_at:
            self._until = {job: until for job, until in self._until.items() if now < until}
            self._tidy_at = now + REFUSED_FOR
        self._until[job_id] = now + REFUSED_FOR


@dataclass(frozen=True, slots=True)
class SettledBatch:
    """What is due of the first `jobs` of those that were to be settled: the others are too many for
    one batch."""

    fires: Sequence[JobFire]
    jobs: int


@dataclass(frozen=True, slots=True)
class FiredBatch:
    """One batch and what became of it: `applied` by job."""

    sent: Sequence[JobFire]
    report: FireReport
    applied: Mapping[JobId, Fired]


class Firing:
    """Settles jobs and sends them. `read_time` says what time it is for the database."""

    def __init__(
        self,
        database: Database,
        read_time: Callable[[], datetime],
        hints: Publisher = SILENCE,
    ) -> None:
        self._database = database
        self._read_time = read_time
        self._hints = hints
        self.refusals = Refusals()

    def settle(
        self, jobs: Iterable[tuple[JobId, Callable[[datetime], JobFire | None]]], now: datetime
    ) -> SettledBatch:
        """What is due of each job; those that cannot be settled are left out. After an outage one
        can owe what usually a thousand do, and until it is settled nothing else is done here, the
        leases included: it ends once it is enough for one call."""
        settled: list[JobFire] = []
        seen = rows = 0
        for job_id, settle in jobs:
            if rows >= ROWS_AT_ONCE:
                break
            seen += 1
            if self.refusals.stands(job_id, now):
                continue
            try:
                fire = settle(now)
            except Exception as error:  # noqa: BLE001 - whatever is wrong with it, it is this job's
                self.refusals.refuse(job_id, now, error)
            else:
                settled.extend([fire] if fire else [])
                rows += fire.rows if fire else 0
        return SettledBatch(settled, seen)

    async def send(
        self,
        batch: Sequence[JobFire],
        as_of: datetime,
        *,
        take: bool = False,
        now: datetime | None = None,
    ) -> FiredBatch:
        """What was decided by `as_of`: if it is held up on its way, the database refuses it."""
        report = await fire_batch(self._database, batch, take=take, now=now, as_of=as_of)
        answered = now or self._read_time()
        for job_id, failure in report.refused:
            self.refusals.refuse(job_id, answered, failure)
        fired = FiredBatch(batch, report, {one.job_id: one for one in report.applied})
        self._tell(fired)
        _count(fired, answered)
        return fired

    def _tell(self, batch: FiredBatch) -> None:
        """Workers, and once for the batch."""
        queues = {one.queue for one in batch.sent if one.job_id in batch.applied and one.fires}
        if queues:
            self._hints.publish(Matter.WORK, queues)

    async def look(
        self,
        shards: Collection[int],
        span: tuple[datetime | None, datetime],
        limit: int,
        now: datetime,
    ) -> DuePage:
        """The first page of what is due within `span` that has something to fire: however many
        cannot be fired, they keep nobody else from being seen."""
        low, high = span
        while True:
            page = await stage_page(self._database, shards, low=low, high=high, limit=limit)
            for job_id, error in page.unreadable:
                if not self.refusals.stands(job_id, now):
                    self.refusals.refuse(job_id, now, error)
            unfit = all(self.refusals.stands(due.job_id, now) for due in page.jobs)
            if not unfit or not page.is_full or page.last is None:
                return page
            low = page.last if page.last != page.first else page.last + TICK


def _count(batch: FiredBatch, answered: datetime) -> None:
    JOBS_TRIGGERED.inc(sum(one.fired for one in batch.report.applied))
    INSTANTS_SKIPPED.inc(sum(one.skipped for one in batch.report.applied))
    delays = TRIGGER_DELAY.of()
    for one in batch.sent:
        fired = batch.applied.get(one.job_id)
        for fire in one.fires[: fired.fired] if fired else ():
            delays.observe((answered - fire.available_at).total_seconds())
