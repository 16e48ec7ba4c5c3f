"""Who of those that go to one place is let through now, and when the others should come again.

A place takes a few at once and as many wait at its door. Who finds more than that before it comes
back when its turn is likely: after the time that those before it will take, as far as is known. So
a fast receiver is kept busy, and a slow one stands in nobody's way.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

HOLD_SECONDS_MIN: Final = 0.05
HOLD_SECONDS_MAX: Final = 30.0
# Until one has come back.
FIRST_GUESS_SECONDS: Final = 0.2
# How much the last one says about the next.
WEIGHT: Final = 0.25
PLACES_MAX: Final = 10_000


@dataclass(slots=True)
class _Crowd:
    under_way: int = 0
    seconds: float = FIRST_GUESS_SECONDS
    next_at: float = 0.0  # when the next one that is told to come again has its turn


class Crowds:
    """`at_once` at each place."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._crowds: dict[Hashable, _Crowd] = {}

    def enter(self, place: Hashable, now: float) -> float | None:
        """None: it may go, until `leave`. Otherwise the seconds after which to ask again."""
        crowd = self._crowds.get(place)
        if crowd is None:
            self._forget()
            crowd = self._crowds[place] = _Crowd()
        if crowd.under_way >= 2 * self._at_once:
            return self.hold(place, now)
        crowd.under_way += 1
        return None

    def hold(self, place: Hashable, now: float) -> float:
        """One more has to come again: after so long. As many pass in a given time as are under way
        together, divided by how long each takes."""
        crowd = self._crowds[place]
        last = now + HOLD_SECONDS_MAX
        next_at = max(now, crowd.next_at) + crowd.seconds / (2 * self._at_once)
        crowd.next_at = min(last, next_at)
        return min(HOLD_SECONDS_MAX, max(HOLD_SECONDS_MIN, crowd.next_at - now))

    def leave(self, place: Hashable, seconds: float | None) -> None:
        """It took so long; None, if it says nothing about the place."""
        crowd = self._crowds[place]
        crowd.under_way -= 1
        if seconds is not None:
            crowd.seconds += WEIGHT * (seconds - crowd.seconds)

    def _forget(self) -> None:
        """Where nobody is now."""
        if len(self._crowds) >= PLACES_MAX:
            idle = [place for place, crowd in self._crowds.items() if not crowd.under_way]
            for place in idle:
                del self._crowds[place]
