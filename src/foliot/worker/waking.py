"""When an idle worker asks for work: when it is told that there is some, and now and then anyway.

Where many workers listen, one row must not bring all of them to the queue at once: about four go
at once, chosen by chance, and the others some time within a quarter of a second, unless work has
come to them by then. So a hint costs the database no more than polls every quarter of a second
would, and what only one of a hundred workers can run waits no longer than it did for a poll.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from foliot.runtime.alarms import Alarms
from foliot.runtime.chance import random_fraction
from foliot.runtime.loop import Hint
from foliot.transport.port import SILENCE, Transport

# Without hints, an idle worker asks as often as this at the least.
IDLE_SECONDS_MIN: Final = 0.05
IDLE_SECONDS_MAX: Final = 0.25
# While hints are known to come, unless the settings say otherwise.
POLL_SECONDS: Final = 1.0
# Of those who could go: with more than this many, some are passed over.
AT_ONCE: Final = 4
EVERY_QUEUE: Final = "*"
_ALARM: Final = 0


@dataclass(frozen=True, slots=True)
class Ear:
    """By what a worker hears hints, and how long it waits at the most while they come."""

    transport: Transport = SILENCE
    poll_seconds: float = POLL_SECONDS

    @property
    def longest_seconds(self) -> float:
        """Between two looks of an idle worker."""
        if not self.transport.flows:
            return IDLE_SECONDS_MAX
        return max(self.poll_seconds, IDLE_SECONDS_MAX)


DEAF: Final = Ear()


def wake_delay_seconds(workers: int, fraction: float) -> float:
    """How long one of so many waits after a hint, by a number of chance from 0 up to 1."""
    share = min(1.0, AT_ONCE / max(workers, 1))
    if fraction < share:
        return 0.0
    return (fraction - share) / (1.0 - share) * IDLE_SECONDS_MAX


class Waking:
    """Gives `hint` when it is this worker's turn. `workers` is how many share its queues."""

    def __init__(self, queues: Sequence[str]) -> None:
        self.hint = Hint()
        self.workers = 1
        self._queues = frozenset(queues)
        self._told: set[str] = set()
        self._told_all = False
        self._alarms = Alarms(lambda _: self.hint.give())

    def hear(self, queues: frozenset[str]) -> None:
        """There may be work in these; without names, anywhere."""
        served = queues if EVERY_QUEUE in self._queues else queues & self._queues
        if queues and not served:
            return
        self._told |= served
        self._told_all = self._told_all or not queues
        delay = wake_delay_seconds(self.workers, random_fraction())
        if not delay:
            self.hint.give()
        elif _ALARM not in self._alarms:
            self._alarms.set(_ALARM, delay)

    def take(self) -> frozenset[str] | None:
        """The queues that hints spoke of since it was last asked; None for all, or if none did."""
        told = None if self._told_all or not self._told else frozenset(self._told)
        self._told, self._told_all = set(), False
        self._alarms.drop(_ALARM)
        return told

    def close(self) -> None:
        self._alarms.close()
