"""The drain in turns: everybody once, then everybody again; medians, and ratios of medians.

A machine that is busy is busy for all of them, so the ratios are worth more than the numbers.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from bench.peers.entrants import PEERS, Entrant, Rates
from bench.peers.environments import NotMeasured
from bench.peers.ours import OurStore, OurWorker
from bench.servers import load_average
from bench.telling import say

OURS: Final = OurWorker()
STORE: Final = OurStore()
ENTRANTS: Final[tuple[Entrant, ...]] = (OURS, *PEERS, STORE)


@dataclass
class Figures:
    """What was measured, and why something was not."""

    rates: dict[str, list[Rates]] = field(default_factory=lambda: defaultdict(list))
    missing: dict[str, str] = field(default_factory=dict)

    def drain(self, entrant: Entrant) -> float | None:
        found = self.rates.get(entrant.name)
        return median(rate.drain for rate in found) if found else None

    def fill(self, entrant: Entrant) -> float | None:
        found = [rate.fill for rate in self.rates.get(entrant.name, ()) if rate.fill is not None]
        return median(found) if found else None

    def ratio(self, entrant: Entrant) -> float | None:
        """Ours by theirs."""
        ours, theirs = self.drain(OURS), self.drain(entrant)
        return ours / theirs if ours and theirs else None

    def as_json(self) -> dict[str, object]:
        """A peer that was not measured is null."""
        found: dict[str, object] = {"per_s": _rounded(self.drain(OURS))}
        found["store_per_s"] = _rounded(self.drain(STORE))
        found["turns"] = len(self.rates[OURS.name])
        for peer in PEERS:
            found[f"{peer.name}_per_s"] = _rounded(self.drain(peer))
            found[f"ratio_{peer.name}"] = _rounded(self.ratio(peer), 2)
        return found

    def table(self) -> list[str]:
        head = ("", "fill/s", "drain/s", "ours by it", "keeps of a job that is over")
        known = self.rates.keys() | self.missing.keys()
        rows = (self._row(entrant) for entrant in ENTRANTS if entrant.name in known)
        return [_line(head), *map(_line, rows)]

    def _row(self, entrant: Entrant) -> tuple[str, ...]:
        if why := self.missing.get(entrant.name):
            return entrant.name, "-", "-", "-", f"(not measured: {why})"
        ratio = None if entrant is OURS else self.ratio(entrant)
        return (
            entrant.name,
            _shown(self.fill(entrant), 0),
            _shown(self.drain(entrant), 0),
            _shown(ratio, 2),
            entrant.keeps,
        )


async def measure(repeat: int, only: Collection[str] = (), part: int = 1) -> Figures:
    """In so many turns, with that part of the jobs; `only` ours and those named."""
    figures = Figures()
    entrants = [each for each in ENTRANTS if not only or each is OURS or each.name in only]
    for entrant in entrants:
        await _prepare(entrant, figures)
    for turn in range(repeat):
        for entrant in _from(turn, entrants):
            if entrant.name not in figures.missing:
                await _run(entrant, turn, figures, part)
    return figures


async def _prepare(entrant: Entrant, figures: Figures) -> None:
    try:
        await entrant.prepare()
    except NotMeasured as why:
        figures.missing[entrant.name] = str(why)
        say(f"{entrant.name}: not measured: {why}")


async def _run(entrant: Entrant, turn: int, figures: Figures, part: int) -> None:
    load = load_average()
    try:
        rates = await entrant.run(part)
    except NotMeasured as why:
        figures.missing[entrant.name] = str(why)
        say(f"turn {turn + 1}, {entrant.name}: not measured: {why}")
        return
    figures.rates[entrant.name].append(rates)
    say(f"turn {turn + 1}, {entrant.name}: {rates.drain:,.0f}/s, load before {load}")


def _from(turn: int, entrants: Sequence[Entrant]) -> list[Entrant]:
    """Who goes first changes, so that a warming or tiring machine favours nobody."""
    first = turn % len(entrants)
    return [*entrants[first:], *entrants[:first]]


def _rounded(number: float | None, digits: int | None = None) -> float | None:
    return None if number is None else round(number, digits)


def _shown(number: float | None, digits: int) -> str:
    return "-" if number is None else f"{number:,.{digits}f}"


def _line(columns: Sequence[str]) -> str:
    name, *numbers, keeps = columns
    return f"{name:<22}{''.join(f'{number:>12}' for number in numbers)}  {keeps}"
