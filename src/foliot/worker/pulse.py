"""Whether this process was frozen: between two beats of a pulse, more time passed than a lease has.

A process that was stopped, or whose machine stood still, learns nothing of it but a gap in the
monotonic clock. An outage of the database leaves no gap: the pulse asks nobody.
"""

from typing import Final

from foliot.runtime.clock import Clock
from foliot.store.workers import SILENT_SECONDS_MAX

PULSE_SECONDS: Final = 0.2


class Pulse:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = clock.monotonic()

    def beat(self) -> float:
        """Seconds since the beat before."""
        now = self._clock.monotonic()
        gap, self._last = now - self._last, now
        return gap


def was_frozen(gap_seconds: float) -> bool:
    """Longer than a silent worker is believed to live: others have its executions by now."""
    return gap_seconds > SILENT_SECONDS_MAX
