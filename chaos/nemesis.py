"""Who does the harm: one fault after another, as the seed says, some of them at the same time. Each
heals what it did; the last ones are waited for, and then everybody is well."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Final

from chaos.facts import LONG_OUTAGE
from chaos.faults.database import DATABASE, be_away
from chaos.faults.freezes import FREEZES
from chaos.faults.kills import ENDS, KILLS
from chaos.faults.overload import OVERLOADS
from chaos.faults.stage import Stage, Strike
from chaos.faults.wires import WIRES

STRIKES: Final = (*KILLS, *ENDS, *FREEZES, *WIRES, *DATABASE, *OVERLOADS)
SECONDS_BETWEEN: Final = 3.6
SPREAD: Final = 0.6
# Long outages have times of their own, so that a long run has some and a short one has none: about
# the 120th second, the 360th, and so on.
OUTAGE_EVERY_SECONDS: Final = 240.0
OUTAGE_SPREAD_SECONDS: Final = 30.0


class Nemesis:
    def __init__(self, stage: Stage, seed: int, intensity: float = 1.0) -> None:
        self._stage = stage
        self._seed = seed
        self._intensity = intensity
        self.struck: Counter[str] = Counter()

    @property
    def kills(self) -> int:
        return sum(number for name, number in self.struck.items() if name.startswith("kill "))

    async def run(self, seconds: float) -> None:
        """For so long, and until all is healed. A fault that cannot be healed ends the run."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._be_away(seconds), name=LONG_OUTAGE)
            await self._strike(time.monotonic() + seconds, group)
        for proxy in self._stage.cluster.proxies.values():
            proxy.heal()

    async def _strike(self, end: float, group: asyncio.TaskGroup) -> None:
        number = 0
        while True:
            number += 1
            # Each fault has a chance of its own: how long others took does not change it.
            chance = Random(f"{self._seed} {number}")  # noqa: S311 - seeded
            pause = SECONDS_BETWEEN / self._intensity * chance.uniform(1 - SPREAD, 1 + SPREAD)
            if time.monotonic() + pause >= end:
                return
            await asyncio.sleep(pause)
            if strike := self._choose(chance):
                self.struck[strike.name] += 1
                group.create_task(strike.do(self._stage, chance), name=strike.name)
                await asyncio.sleep(0)  # so that it has taken its victim before the next

    async def _be_away(self, seconds: float) -> None:
        began = time.monotonic()
        for after, chance in long_outages(self._seed, seconds, self._intensity):
            await asyncio.sleep(max(0.0, began + after - time.monotonic()))
            self.struck[LONG_OUTAGE] += 1
            await be_away(self._stage, chance)

    def _choose(self, chance: Random) -> Strike | None:
        possible = [strike for strike in STRIKES if strike.is_possible(self._stage)]
        weights = [strike.weight for strike in possible]
        return chance.choices(possible, weights)[0] if possible else None


def long_outages(seed: int, seconds: float, intensity: float) -> Iterator[tuple[float, Random]]:
    """When the database goes away for long in a run of so many seconds, each with its chance."""
    number = 0
    while True:
        number += 1
        chance = Random(f"{seed} outage {number}")  # noqa: S311 - seeded
        middle = OUTAGE_EVERY_SECONDS * (number - 0.5)
        spread = chance.uniform(-OUTAGE_SPREAD_SECONDS, OUTAGE_SPREAD_SECONDS)
        after = (middle + spread) / intensity
        if after >= seconds:
            return
        yield after, chance
