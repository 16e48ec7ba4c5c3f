"""What is taken out, where, and who has to notice."""

from dataclasses import dataclass
from typing import Final

ASSERTION: Final = "AssertionError"


@dataclass(frozen=True, slots=True)
class Named:
    """A test by its place, without its parameters; one failing case is enough. It fails with this
    error, by its name: its own assertion, unless what goes wrong is an error of the product."""

    node: str
    error: str = ASSERTION

    def __str__(self) -> str:
        return self.node.rpartition("::")[2]


@dataclass(frozen=True, slots=True)
class Invariant:
    """A verdict of the checker over a chaos run of this seed and length."""

    name: str
    seed: int = 1
    seconds: int = 60

    def __str__(self) -> str:
        return f"{self.name} (chaos, seed {self.seed}, {self.seconds} s)"


@dataclass(frozen=True, slots=True)
class Cut:
    """In this file, under `src/foliot`, the one place that reads `old` becomes `new`."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Guard:
    name: str
    why: str  # what goes wrong without it
    cuts: tuple[Cut, ...]
    caught_by: tuple[Named | Invariant, ...]  # each of them
