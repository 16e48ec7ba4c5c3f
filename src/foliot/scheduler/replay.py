"""Dead letters: what a job wants to be run again after a while is, and how many await a decision
is said: numbers for alerts.

Any number of schedulers do this at once: a letter is replayed once, whoever comes to it.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from foliot.runtime.metrics import DEAD_LETTERS_OPEN, DEAD_LETTERS_REPLAYED, OLDEST_DEAD_LETTER
from foliot.store import auto_replaying
from foliot.store.auto_replaying import replay_due
from foliot.store.database import Database
from foliot.store.dead_letters import Depth, read_depth
from foliot.transport.port import SILENCE, Matter, Publisher

PAUSE_SECONDS: Final = 1.0
WATCH_SECONDS: Final = 15.0


@dataclass(frozen=True, slots=True)
class AutoReplayed:
    """`left` cannot be replayed, and wait for people."""

    replayed: int = 0
    left: int = 0


class AutoReplay:
    name: Final = "auto replay"

    def __init__(
        self, database: Database, *, batch: int = auto_replaying.BATCH, hints: Publisher = SILENCE
    ) -> None:
        self._database = database
        self._batch = batch
        self._hints = hints
        self.pause_seconds = PAUSE_SECONDS

    async def run_once(self, now: datetime | None = None) -> AutoReplayed:
        """One batch; a full one is followed by the next without a pause."""
        due, reports = await replay_due(self._database, batch=self._batch, now=now)
        replayed = left = 0
        for report in reports:
            replayed += sum(each.created for each in report.replayed.values())
            left += len(report.refused)
            if report.queues:
                self._hints.publish(Matter.WORK, report.queues)
            if report.limited:
                self._hints.publish(Matter.ADMIT)
        DEAD_LETTERS_REPLAYED.inc(replayed)
        self.pause_seconds = 0.0 if due == self._batch else PAUSE_SECONDS
        return AutoReplayed(replayed, left)


class WatchDeadLetters:
    name: Final = "watch dead letters"

    def __init__(self, database: Database) -> None:
        self._database = database
        self.pause_seconds = WATCH_SECONDS

    async def run_once(self, now: datetime | None = None) -> Depth:
        depth = await read_depth(self._database, now)
        DEAD_LETTERS_OPEN.set(depth.letters)
        OLDEST_DEAD_LETTER.set(depth.oldest_seconds)
        return depth
