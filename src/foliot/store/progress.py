"""How far attempts have come, kept with the live row while it runs; fenced like everything else."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from foliot.core.ids import ExecutionId, WorkerId
from foliot.core.storable import clean_text
from foliot.store.database import Database
from foliot.store.session import encode_json
from foliot.store.statements import statement

_WRITE_PROGRESS: Final = statement("executions/write_progress")

MESSAGE_CHARS_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class Progress:
    """What a handler says of itself; `percent` is from 0 to 100, or not known."""

    execution_id: ExecutionId
    fence: int
    percent: float | None
    message: str


async def write_progress(database: Database, worker_id: WorkerId, batch: Sequence[Progress]) -> int:
    """How many were written; what is not the worker's any more is left alone."""
    if not batch:
        return 0
    ordered = sorted(batch, key=lambda progress: progress.execution_id)
    return await database.execute(
        _WRITE_PROGRESS,
        worker_id,
        [progress.execution_id for progress in ordered],
        [progress.fence for progress in ordered],
        [_as_text(progress) for progress in ordered],
    )


def _as_text(progress: Progress) -> str:
    percent = progress.percent
    if percent is not None:
        percent = min(100.0, max(0.0, percent)) if -inf < percent < inf else None
    message = clean_text(progress.message, MESSAGE_CHARS_MAX)
    return encode_json({"percent": percent, "message": message})
