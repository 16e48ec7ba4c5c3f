"""`Prefer: wait=30`: an answer that comes when there is news, or when the time is over."""

import re
from typing import Final

from fastapi import Request

from foliot.api.auth import Visit
from foliot.core.ids import ExecutionId
from foliot.core.states import TERMINAL
from foliot.runtime.clock import Clock
from foliot.store.execution_rows import StoredExecution, read_executions

WAIT_SECONDS_MAX: Final = 60
# The first looks are close together, for what is over in a moment.
PAUSE_SECONDS_MIN: Final = 0.05
PAUSE_SECONDS_MAX: Final = 0.5
_WAIT: Final = re.compile(r"(?:^|[,;\s])wait\s*=\s*(\d{1,6})(?:$|[,;\s])")


def wanted_seconds(request: Request) -> int:
    """How long the caller would wait; 0 if they do not say."""
    match = _WAIT.search(request.headers.get("prefer", ""))
    return min(int(match[1]), WAIT_SECONDS_MAX) if match else 0


async def until_over(
    visit: Visit, execution_id: ExecutionId, seconds: int, clock: Clock
) -> StoredExecution | None:
    """The execution once it is over, or as it is after `seconds`; None if there is none."""
    deadline, pause = clock.monotonic() + seconds, PAUSE_SECONDS_MIN
    while True:
        found = await read_executions(visit.database, visit.tenant_id, [execution_id])
        execution = found.get(execution_id)
        left = deadline - clock.monotonic()
        if execution is None or execution.status in TERMINAL or left <= 0:
            return execution
        await clock.sleep(min(pause, left))
        pause = min(pause * 1.5, PAUSE_SECONDS_MAX)
