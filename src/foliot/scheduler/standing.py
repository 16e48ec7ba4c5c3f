"""Whether this scheduler gets on: its loops have good passes, and what is due does not wait long.

What is late is read every ten seconds, beside the work; who asks is told what was found last.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from foliot.runtime.health import Check
from foliot.runtime.loop import Passes
from foliot.runtime.server_time import ServerTime
from foliot.scheduler.firing import Refusals
from foliot.store.arrears import Arrears, read_arrears
from foliot.store.database import Database

PAUSE_SECONDS: Final = 10.0
# A walk over a million rows takes some time; a loop that fails has tried thirty times.
LOOP_SECONDS_MAX: Final = 60.0
DATABASE_SECONDS_MAX: Final = 10.0
LEARN: Final = "learn the time"


class Standing:
    """A trade that looks at what is late, and the answer to who asks how things stand."""

    name: Final = "look at arrears"

    def __init__(
        self, database: Database, time: ServerTime, refusals: Refusals, passes: Passes
    ) -> None:
        self._database = database
        self._time = time
        self._refusals = refusals
        self._passes = passes
        self._found: Arrears | None = None
        self.pause_seconds = PAUSE_SECONDS

    async def run_once(self, now: datetime | None = None) -> Arrears:
        unfit = self._refusals.standing(now or self._time.now())
        self._found = await read_arrears(self._database, unfit, now)
        return self._found

    async def checks(self) -> Mapping[str, Check]:
        if self._found is None:
            away = Check(ok=False, detail="the database has not been heard yet")
            return {"database": away, "loops": self._loops()}
        late = self._found.checks()
        return {
            "database": self._heard(),
            "loops": self._loops(),
            "instants": late["instants"],
            "leases": late["leases"],
        }

    def _heard(self) -> Check:
        silent = self._passes.late_seconds(LEARN)
        if silent > DATABASE_SECONDS_MAX:
            return Check(ok=False, detail=f"the database has not answered for {silent:.0f} s")
        return Check(ok=True, detail="the database answers")

    def _loops(self) -> Check:
        late = self._passes.late(LOOP_SECONDS_MAX)
        if not late:
            return Check(ok=True, detail="every loop gets on")
        told = [
            f"{loop.name} for {loop.late_seconds:.0f} s {loop.failure}".strip() for loop in late
        ]
        return Check(ok=False, detail=f"without a good pass: {'; '.join(told)}")
