"""What a worker has in its hands: every execution that it claimed and that is not written down.

An execution is being read, waits for a slot, runs, or has ended. The heartbeat compares this with
the rows that name the worker; only what has begun is said to have begun.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from foliot.core.ids import ExecutionId
from foliot.store.claiming import ClaimedExecution


class Stage(StrEnum):
    WAITING = "WAITING"
    RUNNING = "RUNNING"
    ENDED = "ENDED"


@dataclass(slots=True)
class Grip:
    """One execution. `taken_at` and `begun_at` are of the monotonic clock."""

    claimed: ClaimedExecution
    taken_at: float
    stage: Stage = Stage.WAITING
    begun_at: float | None = None
    cancel_asked: bool = False
    is_stopped: bool = False  # by the worker, for its own sake
    log_lines: int = 0
    log_bytes: int = 0
    lines_dropped: int = 0

    @property
    def execution_id(self) -> ExecutionId:
        return self.claimed.execution_id

    @property
    def fence(self) -> int:
        return self.claimed.fence

    @property
    def started_at(self) -> datetime | None:
        """By the database's clock, as far as it can be felt: the time of the claim, and how long
        after the answer to it the attempt began."""
        if self.begun_at is None:
            return None
        return self.claimed.claimed_at + timedelta(seconds=self.begun_at - self.taken_at)


class Hand:
    """The grips, by execution. An execution can be there once: a later claim replaces it."""

    def __init__(self) -> None:
        self._grips: dict[ExecutionId, Grip] = {}
        self._waiting: deque[Grip] = deque()
        self._reading: dict[ExecutionId, int] = {}
        self._running = 0

    def __len__(self) -> int:
        return len(self._grips)

    def __contains__(self, execution_id: object) -> bool:
        return execution_id in self._grips

    def __iter__(self) -> Iterator[Grip]:
        return iter(tuple(self._grips.values()))

    @property
    def running(self) -> int:
        return self._running

    @property
    def is_anyone_waiting(self) -> bool:
        """For a slot; some of those may have ended meanwhile."""
        return bool(self._waiting)

    @property
    def waiting(self) -> int:
        """Claimed and not begun, also what is still being read."""
        return len(self._waiting) + len(self._reading)

    def read(self, claims: Iterable[tuple[ExecutionId, int]]) -> None:
        """Claimed; what they are about is being asked for."""
        self._reading.update(claims)

    def forget_reading(self) -> None:
        self._reading.clear()

    def take(self, claimed: ClaimedExecution, taken_at: float) -> Grip:
        self._reading.pop(claimed.execution_id, None)
        grip = Grip(claimed, taken_at)
        self._grips[claimed.execution_id] = grip
        self._waiting.append(grip)
        return grip

    def begin_next(self) -> Grip | None:
        """The one that has waited longest, from now on running."""
        while self._waiting:
            grip = self._waiting.popleft()
            if grip.stage is Stage.WAITING:
                grip.stage = Stage.RUNNING
                self._running += 1
                return grip
        return None

    def end(self, grip: Grip) -> None:
        """It is over, or goes back unbegun; it stays in the hand until that is written."""
        if grip.stage is Stage.RUNNING:
            self._running -= 1
        grip.stage = Stage.ENDED

    def end_waiting(self, taken_before: float | None = None) -> tuple[Grip, ...]:
        """Ends what waits, all of it or what was taken before that time, and returns it."""
        ended: list[Grip] = []
        while self._waiting:
            grip = self._waiting[0]
            if taken_before is not None and grip.taken_at >= taken_before:
                break
            self._waiting.popleft()
            if grip.stage is Stage.WAITING:
                self.end(grip)
                ended.append(grip)
        return tuple(ended)

    def drop(self, execution_id: ExecutionId, fence: int) -> None:
        """Written, or not ours any more."""
        grip = self._grips.get(execution_id)
        if grip is not None and grip.fence == fence:
            self.end(grip)
            del self._grips[execution_id]

    def find(self, execution_id: ExecutionId, fence: int) -> Grip | None:
        grip = self._grips.get(execution_id)
        return grip if grip is not None and grip.fence == fence else None

    def holds(self, execution_id: ExecutionId, fence: int) -> bool:
        if self._reading.get(execution_id) == fence:
            return True
        return self.find(execution_id, fence) is not None

    def begun(self) -> tuple[ExecutionId, ...]:
        """What has begun and is not written down, for the heartbeat."""
        return tuple(
            grip.execution_id for grip in self._grips.values() if grip.begun_at is not None
        )
