"""The ends of attempts, written in batches: by a thousand, or after ten milliseconds.

Nothing that ended is lost while the process lives. If the database goes away, what was to be
written is kept, and what may have been written is looked up before it is written again; all of it
is fenced, so that a late word about an execution that others hold changes nothing. How much can
pile up is bounded by the claiming side, which stops while too much is unwritten.
"""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final

from foliot.core.ids import ExecutionId, WorkerId
from foliot.core.states import ExecutionEvent, ExecutionState
from foliot.runtime.clock import Clock
from foliot.runtime.loop import Hint
from foliot.store import rescuing
from foliot.store.database import Database
from foliot.store.finishing import FinishReport, Outcome, finish, settle
from foliot.store.handing_over import HandOver, hand_over
from foliot.store.rescuing import Verdict
from foliot.worker.verdicts import End

log = logging.getLogger(__name__)

BATCH_MAX: Final = 1000
LINGER_SECONDS: Final = 0.01
IDLE_SECONDS: Final = 5.0
# A verdict is passed over while another session has the row in its hands: for five seconds at the
# most, after which its statement is ended.
VERDICT_TRIES: Final = 25
VERDICT_SECONDS: Final = 0.2

Written = Callable[[End, ExecutionState | None], None]


@dataclass(slots=True)
class _Judged:
    verdict: Verdict
    due_at: float
    tries: int = 0


class Finisher:
    """`put` what ended; `run_once` writes a batch. `written` hears what became of each: its new
    state, or None where another holds it or the database will not have it."""

    def __init__(
        self, database: Database, worker_id: WorkerId, written: Written, clock: Clock
    ) -> None:
        self.hint = Hint()
        self._database = database
        self._worker_id = worker_id
        self._written = written
        self._clock = clock
        self._queue: deque[Outcome] = deque()
        self._in_doubt: list[Outcome] = []
        self._verdicts: list[_Judged] = []
        self._hand_overs: deque[HandOver] = deque()

    @property
    def unwritten(self) -> int:
        outcomes = len(self._queue) + len(self._in_doubt)
        return outcomes + len(self._verdicts) + len(self._hand_overs)

    def put(self, end: End) -> None:
        match end:
            case Outcome():
                self._queue.append(end)
            case Verdict():
                self._verdicts.append(_Judged(end, self._clock.monotonic()))
            case HandOver():
                self._hand_overs.append(end)
        self.hint.give()

    async def linger(self) -> float:
        """One pass of the loop: wait for company, write, and say how long to wait for more."""
        if self.unwritten < BATCH_MAX:
            await self._clock.sleep(LINGER_SECONDS)
        await self.run_once()
        if self.unwritten > len(self._verdicts):
            return 0.0
        return VERDICT_SECONDS if self._verdicts else IDLE_SECONDS

    async def run_once(self, now: datetime | None = None) -> FinishReport:
        """Write up to a thousand. What it raises has been kept, for the next pass."""
        report = await self._write_outcomes(now)
        await self._write_verdicts(now)
        await self._write_hand_overs()
        return report

    async def _write_outcomes(self, now: datetime | None) -> FinishReport:
        write = settle if self._in_doubt else finish
        if not self._in_doubt:
            self._in_doubt = self._take_batch()
        if not self._in_doubt:
            return FinishReport()
        report = await write(self._database, self._worker_id, self._in_doubt, now)
        batch, self._in_doubt = self._in_doubt, []
        for outcome in batch:
            self._written(outcome, report.written.get(outcome.execution_id))
        for execution_id, reason in report.refused.items():
            log.error("the end of execution %s cannot be written: %s", execution_id, reason)
        return report

    def _take_batch(self) -> list[Outcome]:
        """Of each execution one: what was taken away and claimed again may have ended twice, and
        the late word about the earlier claim must not pass for the later one's."""
        batch: dict[ExecutionId, Outcome] = {}
        while self._queue and len(batch) < BATCH_MAX and self._queue[0].execution_id not in batch:
            outcome = self._queue.popleft()
            batch[outcome.execution_id] = outcome
        return list(batch.values())

    async def _write_verdicts(self, now: datetime | None) -> None:
        at = self._clock.monotonic()
        batch = [judged for judged in self._verdicts if judged.due_at <= at]
        if not batch:
            return
        verdicts = [judged.verdict for judged in batch]
        changed = await rescuing.apply(self._database, verdicts, now)
        for judged in batch:
            judged.tries += 1
            judged.due_at = at + VERDICT_SECONDS
            state = changed.get(judged.verdict.execution_id)
            if state is not None or judged.tries == VERDICT_TRIES:
                self._verdicts.remove(judged)
                self._written(judged.verdict, state)

    async def _write_hand_overs(self) -> None:
        """One whose answer is lost is kept and written again, which changes nothing."""
        batch = tuple(islice(self._hand_overs, BATCH_MAX))
        if not batch:
            return
        taken = await hand_over(self._database, self._worker_id, batch)
        for each in batch:
            self._hand_overs.popleft()
            state = ExecutionState.RUNNING if each.execution_id in taken else None
            self._written(each, state)


def given_back(execution_id: ExecutionId, fence: int) -> Outcome:
    """What was claimed and never begun."""
    return Outcome(execution_id, fence, ExecutionEvent.HAND_BACK)
