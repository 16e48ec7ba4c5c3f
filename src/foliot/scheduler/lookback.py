"""How far back to look for what is due.

Below the present lie the dead index entries of everything that was fired, and under a pinned
snapshot they only grow: a look has a lower bound. A job can still come to stand below it, by a time
in the past or a commit that took long, so now and then a look has none: as often as it costs no
more than a twentieth of the time, and every ten seconds whatever it costs.
"""

from datetime import datetime, timedelta
from typing import Final

from foliot.runtime.clock import Clock

PART_OF_TIME: Final = 20
SECONDS_MAX: Final = 10.0


class Lookback:
    def __init__(self, clock: Clock, back: timedelta) -> None:
        self._clock = clock
        self._back = back
        self._began = 0.0
        self._wide = False
        self._next_wide_at = float("-inf")

    def low(self, now: datetime) -> datetime | None:
        """Where the look that begins now may begin; None: at the very first."""
        self._began = self._clock.monotonic()
        self._wide = self._began >= self._next_wide_at
        if not self._wide:
            return now - self._back
        self._next_wide_at = self._began + SECONDS_MAX
        return None

    def done(self) -> None:
        """The look has its answer. One that failed counts as one that cost much: under a pinned
        snapshot every one would fail, and nobody would look at what is due now."""
        if self._wide:
            ended = self._clock.monotonic()
            pause = PART_OF_TIME * (ended - self._began)
            self._next_wide_at = ended + min(pause, SECONDS_MAX)
