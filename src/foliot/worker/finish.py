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
from typing import Final

from foliot.core.ids import ExecutionId, WorkerId
from foliot.core.states import ExecutionEvent, ExecutionState
from foliot.runtime.clock import Clock
from foliot.runtime.loop import Hint
from foliot.store import rescuing
from foliot.store.database import Database
from foliot.store.finishing import FinishReport, Outcome, finish, settle
from foliot.store.rescuing import Verdict

log = logging.getLogger(__name__)

BATCH_MAX: Final = 1000
LINGER_SECONDS: Final = 0.01
IDLE_SECONDS: Final = 5.0
# A verdict is passed over while another session has the row in its hands, which is over soon.
VERDICT_TRIES: Final = 5

Written = Callable[[Outcome | Verdict, ExecutionState | None], None]


@dataclass(slots=True)
class _Judged:
    verdict: Verdict
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
        self._verdicts: deque[_Judged] = deque()

    @property
    def unwritten(self) -> int:
        return len(self._queue) + len(self._in_doubt) + len(self._verdicts)

    def put(self, end: Outcome | Verdict) -> None:
        if isinstance(end, Outcome):
            self._queue.append(end)
        else:
            self._verdicts.append(_Judged(end))
        self.hint.give()

    async def linger(self) -> float:
        """One pass of the loop: wait for company, write, and say how long to wait for more."""
        if self.unwritten < BATCH_MAX:
            await self._clock.sleep(LINGER_SECONDS)
        await self.run_once()
        return 0.0 if self.unwritten else IDLE_SECONDS

    async def run_once(self, now: datetime | None = None) -> FinishReport:
        """Write up to a thousand. What it raises has been kept, for the next pass."""
        report = await self._write_outcomes(now)
        await self._write_verdicts(now)
        return report

    async def _write_outcomes(self, now: datetime | None) -> FinishReport:
        write = settle if self._in_doubt else finish
        if not self._in_doubt:
            size = min(len(self._queue), BATCH_MAX)
            self._in_doubt = [self._queue.popleft() for _ in range(size)]
        if not self._in_doubt:
            return FinishReport()
        report = await write(self._database, self._worker_id, self._in_doubt, now)
        batch, self._in_doubt = self._in_doubt, []
        for outcome in batch:
            self._written(outcome, report.written.get(outcome.execution_id))
        for execution_id, reason in report.refused.items():
            log.error("the end of execution %s cannot be written: %s", execution_id, reason)
        return report

    async def _write_verdicts(self, now: datetime | None) -> None:
        batch = tuple(self._verdicts)
        if not batch:
            return
        verdicts = [judged.verdict for judged in batch]
        changed = await rescuing.apply(self._database, verdicts, now)
        for judged in batch:
            self._verdicts.popleft()
            judged.tries += 1
            state = changed.get(judged.verdict.execution_id)
            if state is None and judged.tries < VERDICT_TRIES:
                self._verdicts.append(judged)
            else:
                self._written(judged.verdict, state)


def given_back(execution_id: ExecutionId, fence: int) -> Outcome:
    """What was claimed and never begun."""
    return Outcome(execution_id, fence, ExecutionEvent.HAND_BACK)
