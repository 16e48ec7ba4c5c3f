"""Whether the database lets this node work and what is due gets done, asked anew each time.

The database is watched in between: an outage is one line in the log when it begins and one when it
ends; nobody has to restart anything.
"""

import logging
from collections.abc import Mapping
from typing import Final

from foliot.core.errors import FoliotError
from foliot.runtime.clock import Clock
from foliot.runtime.health import Check
from foliot.runtime.service import SharedAnswer
from foliot.store.arrears import read_arrears
from foliot.store.database import Database
from foliot.store.readiness import Readiness, read_readiness

log = logging.getLogger(__name__)

ANSWER_WITHIN_SECONDS: Final = 1.0
RETRY_SECONDS_MIN: Final = 0.2
RETRY_SECONDS_MAX: Final = 2.0
UNKNOWN: Final = Check(ok=False, detail="cannot be told while the database is away")


class DatabaseReadiness:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._is_open = False
        self._found = SharedAnswer(self._look)

    async def checks(self) -> Mapping[str, Check]:
        try:
            return await self._found.get(within_seconds=ANSWER_WITHIN_SECONDS)
        except TimeoutError:
            return _away(f"database {self._database.url} does not answer within a second")

    async def watch(self) -> None:
        """For ever: every two seconds while all is well, sooner at first after a failure."""
        told: str | None = None
        delay = RETRY_SECONDS_MIN
        while True:
            checks = await self.checks()
            ours = (checks["database"], checks["schema"])
            reason = next((check.detail for check in ours if not check.ok), "")
            if reason and reason != told:
                log.warning("%s; trying again", reason)
            elif not reason and told != "":
                log.info("database is ready: %s", checks["schema"].detail)
            told = reason
            await self._clock.sleep(delay if reason else RETRY_SECONDS_MAX)
            delay = min(delay * 2, RETRY_SECONDS_MAX) if reason else RETRY_SECONDS_MIN

    async def close(self) -> None:
        await self._found.close()
        await self._database.close()

    async def _look(self) -> Mapping[str, Check]:
        """Never two at a time."""
        try:
            if not self._is_open:
                await self._database.open()
                self._is_open = True
            found = await read_readiness(self._database)
            late = await read_arrears(self._database) if found.ready else None
        except FoliotError as error:
            return _away(str(error))
        checks = {"database": _writable(found), "schema": _level(found)}
        return {**checks, **(late.checks() if late else {})}


def _away(reason: str) -> Mapping[str, Check]:
    return {"database": Check(ok=False, detail=reason), "schema": UNKNOWN}


def _writable(found: Readiness) -> Check:
    if found.level and not found.writable:
        return Check(ok=False, detail="the database is read-only (a standby?)")
    return Check(ok=True, detail="the database answers")


def _level(found: Readiness) -> Check:
    needed = found.level_needed
    if not found.has_schema:
        fix = f"the schema is at level {found.level} of {needed}: run `foliot db migrate`"
        return Check(ok=False, detail=fix)
    if found.level > needed:
        note = f"the schema is at level {found.level}, this Foliot knows {needed}: install a newer"
        return Check(ok=True, detail=note)
    return Check(ok=True, detail=f"the schema is at level {needed}")
