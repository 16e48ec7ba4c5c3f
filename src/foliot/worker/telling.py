"""Who may be waiting for an attempt to end, so that they can be told when its end is written.

A hint for each: whoever waits for a slot under the same limit, for this job to have nothing under
way, or for this very job; and, where the execution itself comes back at once, whoever releases it.
"""

from collections.abc import Iterator
from typing import Final

from foliot.core.model import Trigger
from foliot.core.states import TERMINAL, ExecutionState
from foliot.store.claiming import ClaimedExecution
from foliot.transport.port import Matter

# What comes back later than this is known to the release before it is due.
NEAR_SECONDS: Final = 1.0
_SCHEDULED: Final = frozenset({Trigger.SCHEDULE, Trigger.AFTER})


def matters_of(
    claimed: ClaimedExecution, state: ExecutionState, delay_seconds: float
) -> Iterator[Matter]:
    if state is ExecutionState.RUNNING:
        return
    if claimed.limited:
        yield Matter.ADMIT
    if state not in TERMINAL:
        if delay_seconds < NEAR_SECONDS:
            yield Matter.RELEASE
        return
    if claimed.followed:
        yield Matter.AFTER
    holds = claimed.instructions is not None and claimed.instructions.holds_overlaps
    if holds and claimed.trigger in _SCHEDULED:
        yield Matter.OVERLAP
