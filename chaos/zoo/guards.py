"""All of them, in the order in which they are let out."""

from typing import Final

from chaos.zoo.fires import FIRES
from chaos.zoo.guard import Guard
from chaos.zoo.holds import HOLDS
from chaos.zoo.pauses import PAUSES
from chaos.zoo.runs import RUNS

GUARDS: Final[tuple[Guard, ...]] = (*FIRES, *HOLDS, *PAUSES, *RUNS)
