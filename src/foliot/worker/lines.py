"""A worker's lines to the database: one for each trade, so that none waits for another.

A claim that waits for its queue holds up no heartbeat, and a flood of log lines no finish.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from foliot.runtime.clock import Clock
from foliot.store.connecting import ConnectionOptions, wait_until_reachable
from foliot.store.database import Database
from foliot.store.errors import DatabaseUnreachable


@dataclass(frozen=True, slots=True)
class Lines:
    claim: Database
    finish: Database
    beat: Database
    report: Database


@asynccontextmanager
async def open_lines(url: str, options: ConnectionOptions, clock: Clock) -> AsyncIterator[Lines]:
    """Waits for a database that is not there yet. All are closed together: on a dead line each
    takes its time."""
    lines = [Database(url, replace(options, max_connections=2)) for _ in range(4)]
    try:
        await _open(lines, url, options, clock)
        claim, finish, beat, report = lines
        yield Lines(claim, finish, beat, report)
    finally:
        await asyncio.gather(*(line.close() for line in lines))


async def _open(lines: list[Database], url: str, options: ConnectionOptions, clock: Clock) -> None:
    while True:
        await wait_until_reachable(url, clock, options=options)
        try:
            for line in lines:
                await line.close()
                await line.open()
        except DatabaseUnreachable:
            continue
        return
