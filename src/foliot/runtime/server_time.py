"""The database's clock, felt from here.

Only the database says what time it is; a node's own wall clock is never asked. What is learned is
how far the database's time is from this process's monotonic clock. An answer is at most as wrong
as its round trip took, and less sure the older it is, so the best of the last answers is believed,
until one contradicts it: then the database's clock was set, or this machine slept.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from foliot.runtime.clock import Clock

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# A minute of answers at one in five seconds.
KEPT: Final = 12
# How far two clocks drift apart in a second while one is being adjusted.
DRIFT: Final = 0.0005


@dataclass(frozen=True, slots=True)
class Reading:
    """`offset_seconds`: the database's time minus the monotonic clock, right to half `width`."""

    offset_seconds: float
    width_seconds: float
    taken_at: float

    def error_seconds(self, at: float) -> float:
        """How wrong it may be by now: half of its round trip, and what the clocks drifted."""
        return self.width_seconds / 2 + DRIFT * (at - self.taken_at)


class ServerTime:
    """Ask `learn` once before `now`, and then every few seconds."""

    def __init__(self, ask: Callable[[], Awaitable[datetime]], clock: Clock) -> None:
        self._ask = ask
        self._clock = clock
        self._readings: deque[Reading] = deque(maxlen=KEPT)

    async def learn(self) -> None:
        """One question to the database; its error is raised here."""
        before = self._clock.monotonic()
        told = await self._ask()
        after = self._clock.monotonic()
        middle = (before + after) / 2
        reading = Reading(seconds_of(told) - middle, after - before, after)
        if self._readings and _contradict(self._best(), reading):
            self.forget()
        self._readings.append(reading)

    def forget(self) -> None:
        """After a freeze or an outage: what was learned may be of another server."""
        self._readings.clear()

    @property
    def is_known(self) -> bool:
        return bool(self._readings)

    def now(self) -> datetime:
        """The database's time, as well as it is known."""
        return EPOCH + timedelta(seconds=self._clock.monotonic() + self._offset())

    def past(self) -> datetime:
        """A moment that is over for the database, as close to now as can be said."""
        return self.now() - timedelta(seconds=self._error())

    def future(self) -> datetime:
        """A moment that is still to come for the database, as close to now as can be said."""
        return self.now() + timedelta(seconds=self._error())

    def seconds_until(self, moment: datetime) -> float:
        """Negative if it is past."""
        return seconds_of(moment) - self._clock.monotonic() - self._offset()

    def seconds_until_past(self, moment: datetime) -> float:
        """Until it is over for the database without a doubt, which grows meanwhile."""
        seconds = self.seconds_until(moment) + self._error()
        return seconds / (1 - DRIFT) if seconds > 0 else seconds

    def _offset(self) -> float:
        return self._best().offset_seconds

    def _error(self) -> float:
        return self._best().error_seconds(self._clock.monotonic())

    def _best(self) -> Reading:
        if not self._readings:
            raise RuntimeError("the database's time has not been asked yet")
        at = self._clock.monotonic()
        return min(self._readings, key=lambda reading: reading.error_seconds(at))


def _contradict(old: Reading, new: Reading) -> bool:
    """They cannot both be right, whatever their round trips and the drift between them."""
    errors = old.error_seconds(new.taken_at) + new.error_seconds(new.taken_at)
    return abs(new.offset_seconds - old.offset_seconds) > errors


def seconds_of(moment: datetime) -> float:
    return (moment - EPOCH).total_seconds()
