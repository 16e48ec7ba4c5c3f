"""What a receiver remembers of callbacks, and what it concludes from that."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Call:
    """A callback whose signature fits.

    `keys`: what it is known again by, its idempotency key and the id that is signed; as a rule they
    are the same. What either of them was done for is not done again.
    """

    keys: tuple[str, ...]
    execution_id: str
    fence: int


@dataclass(frozen=True, slots=True)
class Fresh:
    """To be done; `end` will be told how it went."""


@dataclass(frozen=True, slots=True)
class Done:
    """It was done before, with this status."""

    status: int


@dataclass(frozen=True, slots=True)
class InFlight:
    """It is being done at this moment."""


@dataclass(frozen=True, slots=True)
class Stale:
    """A later attempt of the same execution has been here, under this fence."""

    fence: int


Verdict = Fresh | Done | InFlight | Stale


class Store(Protocol):
    """Times are seconds since 1970. Each call is atomic: of two at once, one comes first."""

    def begin(self, call: Call, now_seconds: float) -> Verdict:
        """Stale, if the execution has had a higher fence; otherwise this one is its highest from
        now on. Done or InFlight, if one of the keys is; otherwise all of them are in flight."""

    def end(self, call: Call, status: int | None, now_seconds: float) -> None:
        """Its keys are done with that status, or, with None, free again."""


class AsyncStore(Protocol):
    """A Store for the ASGI door that has to wait for its answers."""

    async def begin(self, call: Call, now_seconds: float) -> Verdict: ...

    async def end(self, call: Call, status: int | None, now_seconds: float) -> None: ...
