"""What others let fall is picked up: executions of dead workers, attempts past their time, start
deadlines that nobody kept.

Workers are buried and attempts ended only by a scheduler that has watched for a whole expiry
without a break. After an outage every worker looks silent and every attempt overdue, until
heartbeats and finished results have come through again. What a dead worker held is taken at once:
being DEAD has no way back. Those who died lately are asked for each time; all hands are walked over
once a minute, and whenever somebody was buried.
"""

import logging
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from foliot.core.grace import EXPIRY_SECONDS
from foliot.runtime.chance import random_fraction
from foliot.runtime.clock import Clock
from foliot.runtime.metrics import EXECUTIONS_EXPIRED, EXECUTIONS_RESCUED, WORKER_DEATHS
from foliot.scheduler.watching import Watcher
from foliot.store import expiring, rescuing
from foliot.store.database import Database
from foliot.store.errors import DatabaseError, TransactionConflict
from foliot.store.expiring import expire
from foliot.store.rescuing import end_overdue, rescue_left, rescue_lost
from foliot.store.workers import bury_silent

log = logging.getLogger(__name__)

PAUSE_SECONDS: Final = 1.0
# Under a pinned snapshot a walk over all hands takes long: it gets a twentieth of the time.
EVERYWHERE_SECONDS: Final = 60.0
EVERYWHERE_PER_SECOND: Final = 20.0
# What this is the second line of has had its time and five seconds more. Shorter than a gap.
OVERDUE_PAUSE_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Rescued:
    """`judging` is False while the watch is too young to bury anybody."""

    judging: bool
    buried: int = 0
    rescued: int = 0


@dataclass(frozen=True, slots=True)
class Ended:
    judging: bool
    ended: int = 0


@dataclass(frozen=True, slots=True)
class Expired:
    expired: int


class Rescue:
    """Workers that fell silent are dead, and what the dead hold is queued again or given up."""

    name: Final = "rescue"

    def __init__(
        self,
        database: Database,
        clock: Clock,
        *,
        expiry_seconds: float = EXPIRY_SECONDS,
        page_rows: int = rescuing.PAGE_ROWS,
    ) -> None:
        self._database = database
        self._watcher = Watcher(database, clock, expiry_seconds)
        self._clock = clock
        self._everywhere_at = float("-inf")
        self._expiry_seconds = expiry_seconds
        self._page_rows = page_rows
        self.pause_seconds = PAUSE_SECONDS

    async def run_once(self, now: datetime | None = None) -> Rescued:
        buried = 0
        async with self._watcher.look(now) as judged_at:
            if judged_at is not None:
                buried = len(await bury_silent(self._database, self._expiry_seconds, judged_at))
                WORKER_DEATHS.inc(buried)
            report = await rescue_left(self._database, self._page_rows, now)
            rescued = len(report.changed) + await self._look_everywhere(buried, now)
            EXECUTIONS_RESCUED.inc(rescued)
        return Rescued(judged_at is not None, buried, rescued)

    async def _look_everywhere(self, buried: int, now: datetime | None) -> int:
        """That it took too long is no sign of what others do: the watch goes on."""
        began = self._clock.monotonic()
        if not buried and began < self._everywhere_at:
            return 0
        try:
            return len((await rescue_lost(self._database, self._page_rows, now)).changed)
        except TransactionConflict as conflict:
            log.warning("what the dead hold was not looked for everywhere: %s", conflict)
            return 0
        finally:
            took = self._clock.monotonic() - began
            self._everywhere_at = began + max(EVERYWHERE_SECONDS, took * EVERYWHERE_PER_SECOND)


class EndOverdue:
    """Attempts that a living worker lets run past their timeout, their grace and five seconds."""

    name: Final = "end overdue"

    def __init__(
        self,
        database: Database,
        clock: Clock,
        *,
        expiry_seconds: float = EXPIRY_SECONDS,
        page_rows: int = rescuing.PAGE_ROWS,
    ) -> None:
        self._database = database
        self._watcher = Watcher(database, clock, expiry_seconds)
        self._page_rows = page_rows
        self.pause_seconds = OVERDUE_PAUSE_SECONDS

    async def run_once(self, now: datetime | None = None) -> Ended:
        ended = 0
        async with self._watcher.look(now) as judged_at:
            if judged_at is not None:
                ended = await self._end(judged_at)
        return Ended(judged_at is not None, ended)

    async def _end(self, judged_at: datetime) -> int:
        """What we cannot write a worker could not either: it may have been over in time."""
        try:
            report = await end_overdue(self._database, random_fraction, self._page_rows, judged_at)
        except DatabaseError:
            self._watcher.begin_anew()
            raise
        return len(report.changed)


class Expire:
    """Executions that nobody started in time: an outage is no excuse for a start deadline."""

    name: Final = "expire"

    def __init__(self, database: Database, page_rows: int = expiring.PAGE_ROWS) -> None:
        self._database = database
        self._page_rows = page_rows
        self._rows = page_rows  # half of it after a failure: large payloads go to dead letters
        self.pause_seconds = PAUSE_SECONDS

    async def run_once(self, now: datetime | None = None) -> Expired:
        """Until a page is not full."""
        expired = 0
        while True:
            rows = self._rows
            try:
                page = len(await expire(self._database, rows, now))
            except DatabaseError:
                self._rows = max(1, rows // 2)
                raise
            self._rows = min(self._page_rows, rows * 2)
            expired += page
            EXECUTIONS_EXPIRED.inc(page)
            if page < rows:
                return Expired(expired)
