"""Whose silence counts: a watcher asks the database at each pass and says as of when to judge.

The question needs the locks that a heartbeat and an end need: while they cannot be written, it
fails, and the watch begins anew. Other failures of a pass count only where the database was lost.
What is judged is judged as of the time that the database told in the answer, not as of the time
at which the judgement gets there: one that was held up by an outage on its way changes nothing.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

from foliot.core.grace import EXPIRY_SECONDS, Reading, Watch, may_judge, watch_on
from foliot.runtime.clock import Clock
from foliot.store.database import Database
from foliot.store.errors import CommitUnknown, DatabaseError, DatabaseUnreachable
from foliot.store.workers import read_hearing


class Watcher:
    """One for each trade that judges by silence."""

    def __init__(
        self, database: Database, clock: Clock, expiry_seconds: float = EXPIRY_SECONDS
    ) -> None:
        self._database = database
        self._clock = clock
        self._expiry_seconds = expiry_seconds
        self._watch: Watch | None = None

    @asynccontextmanager
    async def look(self, now: datetime | None = None) -> AsyncIterator[datetime | None]:
        """The time as of which to judge, or None while nobody may be; the pass is the block.

        The database is asked after the pass as well: a long one is no gap.
        """
        try:
            await self._ask(now)
            watch = self._watch
            judging = may_judge(watch, self._expiry_seconds)
            yield watch.latest.told if watch is not None and judging else None
            await self._ask(now)
        except (DatabaseUnreachable, CommitUnknown):
            self._watch = None
            raise

    def begin_anew(self) -> None:
        """Something shows that what is judged here could not be written."""
        self._watch = None

    async def _ask(self, now: datetime | None) -> None:
        try:
            told = await read_hearing(self._database, now)
        except DatabaseError:
            self._watch = None
            raise
        self._watch = watch_on(self._watch, Reading(self._clock.monotonic(), told))
