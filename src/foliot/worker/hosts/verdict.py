"""A host is dead: who of those it ran did it, and who only happened to be there.

The board has the ticket of whoever's code ran at the end. A kill from outside (no memory left, an
operator) may come at anybody's turn, so then all are suspects. Suspicion sends an execution to
run alone; what the worker itself killed, it killed for a known one, and the others are free.
"""

import signal
from dataclasses import dataclass

from foliot.core.model import ErrorType, Failure
from foliot.worker.tasks import Crashed, Ended, HandedBack


@dataclass(frozen=True, slots=True)
class Death:
    """How a host ended. `status` is negative for a signal, None where nobody saw it.

    `blocker` is the ticket of the one that kept the loop when the worker killed the host, or 0.
    """

    status: int | None
    running: int  # on the board
    was_killed: bool = False
    blocker: int = 0
    is_shared: bool = False
    is_alone: bool = False  # nothing else ever ran in it
    reason: str = ""


def verdict(death: Death, ticket: int, *, has_begun: bool) -> Ended:
    """For one that was not asked to stop: those are ended as asked."""
    if not has_begun and death.running != ticket:
        return HandedBack(death.reason or "its process ended before it began")
    if death.was_killed:
        if ticket == death.blocker:
            message = "it kept the event loop, so that others could not be stopped in time"
            return Crashed(Failure(ErrorType.EXIT_CODE, message), alone=False)
        return HandedBack("its process was ended because another handler in it did not stop")
    is_known = death.is_shared and death.running and death.status != -signal.SIGKILL
    if is_known and death.running != ticket:
        return HandedBack(f"another handler in its process ended it: {_words(death)}")
    return Crashed(Failure(ErrorType.EXIT_CODE, _words(death)), alone=death.is_alone)


def _words(death: Death) -> str:
    if death.status is None:
        return "its process is gone"
    if death.status >= 0:
        return f"its process exited with status {death.status}"
    try:
        name = signal.Signals(-death.status).name
    except ValueError:
        name = f"signal {-death.status}"
    hint = " (out of memory?)" if name == "SIGKILL" else ""
    return f"its process was ended by {name}{hint}"
