"""Foliot's own processes for a measurement: started as users start them, and surely ended.

They hang on this process by a lifeline: even if it is killed, they leave.
"""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import asyncpg

from foliot.testing.commands import FoliotCommand
from foliot.testing.engine import Engine

HANDLERS: Final = Path(__file__).with_name("idle_handlers.py")
# A look walks over the rows that are over: each 20 ms they took a tenth of a core from what is
# measured. When something ended is read from history instead.
LOOK_SECONDS: Final = 0.25
NOW: Final = "select clock_timestamp()"
ALL_OVER: Final = "select not exists (select from foliot.executions)"
LAST_END: Final = "select extract(epoch from max(finished_at))::float8 from foliot.attempts"


@contextmanager
def at_work(
    engine: Engine, *, schedulers: int = 1, workers: int = 1, concurrency: int = 1000
) -> Iterator[list[FoliotCommand]]:
    """So many of each, ready: the schedulers first."""
    with ExitStack() as stack:
        minds = [stack.enter_context(engine.scheduler()) for _ in range(schedulers)]
        options = ("--concurrency", str(concurrency))
        hands = [stack.enter_context(engine.worker(*options)) for _ in range(workers)]
        until_ready(minds, hands)
        yield [*minds, *hands]


def until_ready(schedulers: list[FoliotCommand], workers: list[FoliotCommand]) -> None:
    for command in schedulers:
        command.line_with("runs on")
    for command in workers:
        command.line_with("serves")


async def until(
    db: asyncpg.Connection, question: str, *arguments: object, within_seconds: float = 300.0
) -> None:
    """Until the database says yes."""
    async with asyncio.timeout(within_seconds):
        while not await db.fetchval(question, *arguments):  # noqa: ASYNC110 - of a database
            await asyncio.sleep(LOOK_SECONDS)


async def until_time(db: asyncpg.Connection, moment: object) -> None:
    """Until the database's clock shows it."""
    left = await db.fetchval("select extract(epoch from $1 - clock_timestamp())::float8", moment)
    await asyncio.sleep(max(0.0, left))
