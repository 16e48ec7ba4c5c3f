"""Hints between processes, by whatever carries them.

A hint says that something may have changed, so that whoever waits need not wait longer. It is never
the truth: it may come late, twice, for nothing or not at all. Every loop that hears hints polls as
well, so losing all of them costs time and nothing else. Publishing therefore never waits and never
fails.
"""

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Final, Protocol

# Called with the names of what may have changed, and with none when anything may have.
Hear = Callable[[frozenset[str]], None]


class Matter(StrEnum):
    """What a hint is about, and what its names are."""

    WORK = "work"  # executions became claimable: their queues
    CANCEL = "cancel"  # executions that run are to stop: their ids
    STAGE = "stage"  # jobs are due in a moment: their shards
    RELEASE = "release"  # rows wait for a time that is near or has come
    ADMIT = "admit"  # a limit may have room, or rows that wait for it
    OVERLAP = "overlap"  # an execution is over that others of its job wait for
    AFTER = "after"  # an execution is over whose job others follow


class Publisher(Protocol):
    def publish(self, matter: Matter, names: Iterable[str] = ()) -> None:
        """Soon, together with others. Without names: anything of it may have changed."""


class Transport(Publisher, Protocol):
    @property
    def flows(self) -> bool:
        """Whether what is published now would be heard here, as far as can be known."""

    def subscribe(self, matter: Matter, hear: Hear) -> Callable[[], None]:
        """`hear` is called for every hint about the matter, and without names whenever hints may
        have been lost or begin to be. Call what is returned to hear no more."""

    async def run(self) -> None:
        """Carry hints, until cancelled."""


class Silence:
    """No transport at all: nobody is told, and everyone polls."""

    @property
    def flows(self) -> bool:
        return False

    def publish(self, matter: Matter, names: Iterable[str] = ()) -> None: ...

    def subscribe(self, matter: Matter, hear: Hear) -> Callable[[], None]:  # noqa: ARG002 - nothing comes
        return lambda: None

    async def run(self) -> None: ...


SILENCE: Final = Silence()
