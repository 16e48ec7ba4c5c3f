"""What became of one invariant: how often it was looked at, and what shows that it does not hold.

A violation has a witness, the few records that show it. The smallest ones are kept, so that a
person reads as little as possible. An invariant that was looked at too seldom has not been shown to
hold, and fails as well.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

LINES_MAX: Final = 15
WITNESSES_KEPT: Final = 10


@dataclass(frozen=True, slots=True)
class Witness:
    """What is wrong, in a line, and the records that show it, oldest first."""

    title: str
    records: tuple[str, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """At most fifteen, with what was left out said."""
        if len(self.records) < LINES_MAX:
            return (self.title, *self.records)
        shown = self.records[: LINES_MAX - 2]
        return (self.title, *shown, f"and {len(self.records) - len(shown)} more")


@dataclass(frozen=True, slots=True)
class Verdict:
    """`violations` are the smallest witnesses, `found` counts them all."""

    name: str
    checked: int
    wanted: int
    violations: tuple[Witness, ...]
    found: int = 0

    @property
    def ok(self) -> bool:
        return not self.violations and self.checked >= self.wanted


class Findings:
    """Where a check says what it looked at and what it found."""

    def __init__(self) -> None:
        self.checked = 0
        self.found = 0
        self._kept: list[Witness] = []

    def saw(self, count: int = 1) -> None:
        self.checked += count

    def forget(self) -> None:
        """What was looked at shows nothing."""
        self.checked = 0

    def violate(self, title: str, records: Iterable[str] = ()) -> None:
        self.found += 1
        witness = Witness(title, tuple(records))
        if len(self._kept) < WITNESSES_KEPT:
            self._kept.append(witness)
            return
        largest = max(range(len(self._kept)), key=lambda place: len(self._kept[place].records))
        if len(witness.records) < len(self._kept[largest].records):
            self._kept[largest] = witness

    def verdict(self, name: str, wanted: int) -> Verdict:
        smallest = sorted(self._kept, key=lambda witness: len(witness.records))
        return Verdict(name, self.checked, wanted, tuple(smallest), self.found)
