"""Who does the harm: one fault after another, as the seed says, some of them at the same time. Each
heals what it did; the last ones are waited for, and then everybody is well."""

import asyncio
import time
from collections import Counter
from random import Random
from typing import Final

from chaos.faults.database import DATABASE
from chaos.faults.freezes import FREEZES
from chaos.faults.kills import KILLS
from chaos.faults.overload import OVERLOADS
from chaos.faults.stage import Stage, Strike
from chaos.faults.wires import WIRES

STRIKES: Final = (*KILLS, *FREEZES, *WIRES, *DATABASE, *OVERLOADS)
SECONDS_BETWEEN: Final = 3.6
SPREAD: Final = 0.6


class Nemesis:
    def __init__(self, stage: Stage, seed: int, intensity: float = 1.0) -> None:
        self._stage = stage
        self._seed = seed
        self._seconds_between = SECONDS_BETWEEN / intensity
        self.struck: Counter[str] = Counter()

    @property
    def kills(self) -> int:
        return sum(number for name, number in self.struck.items() if name.startswith("kill "))

    async def run(self, seconds: float) -> None:
        """For so long, and until all is healed. A fault that cannot be healed ends the run."""
        end, number = time.monotonic() + seconds, 0
        async with asyncio.TaskGroup() as group:
            while True:
                number += 1
                # Each fault has a chance of its own: how long others took does not change it.
                chance = Random(f"{self._seed} {number}")  # noqa: S311 - seeded
                pause = self._seconds_between * chance.uniform(1 - SPREAD, 1 + SPREAD)
                if time.monotonic() + pause >= end:
                    break
                await asyncio.sleep(pause)
                if strike := self._choose(chance):
                    self.struck[strike.name] += 1
                    group.create_task(strike.do(self._stage, chance), name=strike.name)
                    await asyncio.sleep(0)  # so that it has taken its victim before the next
        for proxy in self._stage.cluster.proxies.values():
            proxy.heal()

    def _choose(self, chance: Random) -> Strike | None:
        possible = [strike for strike in STRIKES if strike.is_possible(self._stage)]
        weights = [strike.weight for strike in possible]
        return chance.choices(possible, weights)[0] if possible else None
