"""What a worker does to the tables, one step at a time and by hand."""

from dataclasses import dataclass
from typing import Any

from foliot.core.ids import WorkerId
from foliot.core.states import ExecutionEvent
from foliot.store.claiming import Claim, ClaimRequest, claim
from foliot.store.database import Database
from foliot.store.finishing import Outcome, finish
from foliot.store.server_clock import read_clock
from foliot.testing.database import sql
from foliot.testing.rows import make_worker


@dataclass(frozen=True)
class Hand:
    """Serves every lane of the default queue."""

    database: Database
    worker_id: WorkerId

    async def claim(self) -> Claim:
        """The next execution, whichever it is; there must be one."""
        lanes = await self.database.fetch(sql("select id from foliot.lanes"))
        request = ClaimRequest(self.worker_id, "default", [row["id"] for row in lanes], 1)
        (claimed,) = await claim(self.database, request)
        return claimed

    async def finish(
        self,
        held: Claim,
        event: ExecutionEvent,
        **more: Any,  # noqa: ANN401 - any field of an outcome
    ) -> None:
        started_at = await read_clock(self.database)
        outcome = Outcome(held.execution_id, held.fence, event, started_at=started_at, **more)
        report = await finish(self.database, self.worker_id, [outcome])
        assert held.execution_id in report.written  # noqa: S101 - only tests come here


async def lend_hand(database: Database) -> Hand:
    return Hand(database, await make_worker(database))
