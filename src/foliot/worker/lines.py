"""A worker's lines to the database: one for each trade, so that none waits for another.

A claim that waits for its queue holds up no heartbeat, and a flood of log lines no finish. A
heartbeat on a connection that has died without a word is given up early enough for two more.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

from foliot.runtime.clock import Clock
from foliot.store.connecting import ConnectionOptions
from foliot.store.database import Database
from foliot.store.opening import open_all

# A worker is dead after fifteen seconds of silence, and beats every five.
BEAT_ANSWER_SECONDS: Final = 3.0
# When all is said, a farewell is a courtesy.
CLOSE_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Lines:
    claim: Database
    finish: Database
    beat: Database
    report: Database
    deliver: Database

    def cut(self) -> None:
        """Nothing more is to be said, and nobody waits for an answer. Deliveries end by
        themselves."""
        for line in (self.claim, self.finish, self.beat, self.report):
            line.cut()


@asynccontextmanager
async def open_lines(url: str, options: ConnectionOptions, clock: Clock) -> AsyncIterator[Lines]:
    """Waits for a database that is not there yet. All are closed together: on a dead line each
    takes its time."""
    few = replace(options, max_connections=2)
    quiet = replace(few, warn=False)
    brief = replace(quiet, command_seconds=BEAT_ANSWER_SECONDS, acquire_seconds=BEAT_ANSWER_SECONDS)
    lines = [Database(url, each) for each in (few, quiet, brief, quiet, quiet)]
    try:
        await open_all(lines, url, options, clock)
        yield Lines(*lines)
    finally:
        closing = (line.close(within_seconds=CLOSE_SECONDS) for line in lines)
        await asyncio.gather(*closing)
