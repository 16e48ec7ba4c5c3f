"""A sign of life every five seconds, and what the tables know that the worker does not.

A heartbeat says what has begun and brings back the rows that name the worker. After a worker's
death only what it said tells apart what had begun from what had not, so news of that kind waits
for a second at the most. A row that it does
not hold, seen twice in a row, is a claim whose answer was lost: it goes back. What it holds and no
row gives it any more was taken from it: it lets go. What it is asked to stop, it stops.
"""

import logging
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from foliot.core.ids import ExecutionId, WorkerId
from foliot.core.states import WorkerState
from foliot.runtime.loop import Hint
from foliot.store.database import Database
from foliot.store.job_references import as_uuid
from foliot.store.workers import Held, beat, list_cancelled
from foliot.worker.attempts import Attempts
from foliot.worker.finish import given_back
from foliot.worker.hand import Grip, Stage

log = logging.getLogger(__name__)

BEAT_SECONDS: Final = 5.0
NEWS_SECONDS: Final = 1.0
CANCEL_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class BeatReport:
    """What a heartbeat found out; `status` is None for a worker that is dead to the others."""

    status: WorkerState | None
    handed_back: int = 0
    let_go: int = 0
    cancelled: int = 0


class Heartbeat:
    def __init__(self, database: Database, worker_id: WorkerId, attempts: Attempts) -> None:
        self._database = database
        self._worker_id = worker_id
        self._attempts = attempts
        self.cancels = Hint()
        self._strange: frozenset[tuple[ExecutionId, int]] = frozenset()
        self._said: frozenset[ExecutionId] = frozenset()

    def has_news(self) -> bool:
        """Something has begun that no heartbeat has said."""
        return not self._said.issuperset(self._attempts.hand.begun())

    async def run_once(self, now: datetime | None = None) -> BeatReport:
        hand = self._attempts.hand
        before = [grip for grip in hand if grip.stage is not Stage.ENDED]
        begun = hand.begun()
        answer = await beat(self._database, self._worker_id, begun, now)
        self._said = frozenset(begun)
        if answer is None:
            return BeatReport(None)
        return BeatReport(
            answer.status,
            handed_back=self._hand_back_strange(answer.held),
            let_go=self._let_go(before, answer.held),
            cancelled=self._cancel(answer.held),
        )

    def hear_of_cancels(self, executions: frozenset[str]) -> None:
        """These are to be stopped; without names, any may be."""
        if not executions or any(as_uuid(each) in self._attempts.hand for each in executions):
            self.cancels.give()

    async def stop_cancelled(self) -> int:
        """Between two heartbeats: whoever cancels should not wait for the next."""
        running = [
            grip.execution_id
            for grip in self._attempts.hand
            if grip.stage is Stage.RUNNING and not grip.cancel_asked
        ]
        if not running:
            return 0
        return self._cancel(await list_cancelled(self._database, self._worker_id, running))

    def _hand_back_strange(self, held: tuple[Held, ...]) -> int:
        """An end that was written while the heartbeat was under way is strange once, not twice."""
        strange = frozenset(
            (row.execution_id, row.fence)
            for row in held
            if not self._attempts.hand.holds(row.execution_id, row.fence)
        )
        lost, self._strange = strange & self._strange, strange - self._strange
        for execution_id, fence in sorted(lost):
            self._attempts.finisher.put(given_back(execution_id, fence))
        if lost:
            self._attempts.give_up(lost)
            log.warning("%d claims whose answer was lost are handed back", len(lost))
        return len(lost)

    def _let_go(self, before: list[Grip], held: tuple[Held, ...]) -> int:
        """Of what was held before the heartbeat was sent: later claims it cannot know."""
        named = {(row.execution_id, row.fence) for row in held}
        gone = [
            grip
            for grip in before
            if grip.stage is not Stage.ENDED and (grip.execution_id, grip.fence) not in named
        ]
        for grip in gone:
            self._attempts.let_go(grip)
        return len(gone)

    def _cancel(self, held: tuple[Held, ...]) -> int:
        asked = 0
        for row in held:
            grip = self._attempts.hand.find(row.execution_id, row.fence)
            if row.cancel_requested and grip is not None and not grip.cancel_asked:
                self._attempts.cancel(grip)
                asked += 1
        return asked
