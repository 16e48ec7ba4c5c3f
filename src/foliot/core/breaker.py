"""When to stop calling somebody who does not answer, and when to ask again.

Ten failures within half a minute, if no more calls than that succeed meanwhile, open the breaker.
While it is open nothing is called. After a pause one call goes out as a probe: if it is answered,
the breaker closes; if not, the next pause is twice as long, up to a minute. An answer to any call
closes it, also to one that was under way before. Times are of a monotonic clock, in seconds.
"""

from dataclasses import dataclass, replace
from typing import Final

FAILURES_MIN: Final = 10
WINDOW_SECONDS: Final = 30.0
PAUSE_SECONDS_MIN: Final = 2.0
PAUSE_SECONDS_MAX: Final = 60.0


@dataclass(frozen=True, slots=True)
class Outage:
    """While the breaker is open. `since` is the first of the failures."""

    since: float
    failures: int
    pause_seconds: float
    probe_at: float
    probing: bool = False


@dataclass(frozen=True, slots=True)
class Breaker:
    """What is remembered between calls. A window begins with a failure; who never fails has
    nothing to remember."""

    window_from: float = 0.0
    failures: int = 0
    successes: int = 0
    outage: Outage | None = None

    @property
    def is_calm(self) -> bool:
        return not self.failures and self.outage is None


@dataclass(frozen=True, slots=True)
class Go:
    """Call. `is_probe`: all others wait for how it ends."""

    breaker: Breaker
    is_probe: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """Do not call before so many seconds."""

    seconds: float
    outage: Outage


CALM: Final = Breaker()


def ask(breaker: Breaker, now: float) -> Go | Wait:
    """Whether a call may go out."""
    outage = breaker.outage
    if outage is None:
        return Go(breaker)
    if now < outage.probe_at:
        return Wait(outage.probe_at - now, outage)
    if outage.probing:
        return Wait(outage.pause_seconds, outage)
    return Go(replace(breaker, outage=replace(outage, probing=True)), is_probe=True)


def succeeded(breaker: Breaker) -> Breaker:
    """A call was answered."""
    if breaker.is_calm:
        return breaker
    if breaker.outage is not None:
        return CALM
    return replace(breaker, successes=breaker.successes + 1)


def failed(breaker: Breaker, now: float, *, was_probe: bool) -> Breaker:
    """A call was not answered, or the answer was that nothing works there."""
    outage = breaker.outage
    if outage is not None:
        return replace(breaker, outage=_longer(outage, now, was_probe=was_probe))
    if not breaker.failures or now - breaker.window_from > WINDOW_SECONDS:
        return Breaker(window_from=now, failures=1)
    counted = replace(breaker, failures=breaker.failures + 1)
    if counted.failures < FAILURES_MIN or counted.failures < counted.successes:
        return counted
    opened = Outage(
        since=counted.window_from,
        failures=counted.failures,
        pause_seconds=PAUSE_SECONDS_MIN,
        probe_at=now + PAUSE_SECONDS_MIN,
    )
    return Breaker(outage=opened)


def gave_up(breaker: Breaker, *, was_probe: bool) -> Breaker:
    """A call ended without telling anything: it was cancelled, or never got out."""
    if breaker.outage is None or not was_probe:
        return breaker
    return replace(breaker, outage=replace(breaker.outage, probing=False))


def _longer(outage: Outage, now: float, *, was_probe: bool) -> Outage:
    """What was under way when it opened proves nothing new; a probe does."""
    if not was_probe:
        return replace(outage, failures=outage.failures + 1)
    pause = min(2 * outage.pause_seconds, PAUSE_SECONDS_MAX)
    return Outage(outage.since, outage.failures + 1, pause, now + pause)
