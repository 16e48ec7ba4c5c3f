"""Nodes that work on until nothing is left, and now and then lose their connection in between."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from foliot.core.ids import ExecutionId, WorkerId
from foliot.core.states import ExecutionEvent
from foliot.store.connecting import ConnectionOptions
from foliot.store.database import Database
from foliot.store.errors import CommitUnknown, DatabaseUnreachable, TransactionConflict
from foliot.store.finishing import Outcome, finish
from foliot.testing.database import sql
from foliot.testing.rows import make_worker
from foliot.testing.spans import Span

_NAME: Final = "flaky"
_LEFT: Final = sql("select count(*) from foliot.executions")
_HELD: Final = sql("select id, fence from foliot.executions where worker_id = $1 order by id")
_RUNS: Final = sql(
    "select claimed_at, finished_at from foliot.attempts where claimed_at is not null"
)
_KILL_ONE: Final = sql(
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()"
    " and application_name = $1 and state = 'active' order by random() limit 1"
)


class FlakyNode(ABC):
    """`flaky` is the line that is cut; `steady` that of those who clear up after a worker."""

    def __init__(self, flaky: Database, steady: Database) -> None:
        self.flaky = flaky
        self.steady = steady

    @abstractmethod
    async def take_turn(self, worker: WorkerId) -> None:
        """Claim, end, and whatever else is to be done again and again."""

    async def run(self) -> None:
        while await self.steady.fetch_value(_LEFT):
            worker = await make_worker(self.steady)
            try:
                while await self.flaky.fetch_value(_LEFT):
                    await self.take_turn(worker)
            except (CommitUnknown, DatabaseUnreachable, TransactionConflict):
                # It may have claimed without hearing of it: its rows are rescued and parked again.
                await self._lose(worker)

    async def _lose(self, worker: WorkerId) -> None:
        lost = [
            Outcome(ExecutionId(row["id"]), row["fence"], ExecutionEvent.LOSE)
            for row in await self.steady.fetch(_HELD, worker)
        ]
        if lost:
            await finish(self.steady, worker, lost)


def flaky_options(connections: int) -> ConnectionOptions:
    return ConnectionOptions(max_connections=connections, application_name=_NAME)


async def run_killing(
    nodes: Sequence[FlakyNode], most: int, look: Callable[[], Awaitable[None]]
) -> int:
    """All of them to their end, with up to `most` connections cut; `look` comes before each cut
    and is where a test makes sure. How many were cut."""
    killed = 0
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(node.run()) for node in nodes]
        while not all(task.done() for task in tasks):
            await look()
            if killed < most:
                killed += len(await nodes[0].steady.fetch(_KILL_ONE, _NAME))
    return killed


async def runs(database: Database) -> list[Span]:
    """From the claim to the end, of everything that was ever claimed and is over."""
    return [(row["claimed_at"], row["finished_at"]) for row in await database.fetch(_RUNS)]
