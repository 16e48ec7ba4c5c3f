"""SIGSTOP for longer than what a node holds is its own, then SIGCONT: it wakes up and knows nothing
of it. Idle, at a certain statement, and with a transaction open."""

import asyncio
from random import Random
from typing import Final

from chaos.faults.kills import choose_point
from chaos.faults.stage import Stage, Strike, strike_at
from chaos.node import Node, Role
from foliot.testing.points import Point

# A shard's lease is 10 s, a worker is dead after 15 s of silence. An API holds nothing.
SECONDS: Final = {
    Role.SCHEDULER: (11.0, 15.0),
    Role.WORKER: (16.5, 20.0),
    Role.API: (2.0, 6.0),
}
# Until it can be counted on again: it finds that its lease is gone, and registers anew.
AWAKE_SECONDS: Final = 4.0
IN_A_TRANSACTION: Final = Point("inside")


async def freeze(stage: Stage, chance: Random, node: Node) -> None:
    await _freeze(stage, chance, node, choose_point(node.role, chance))


async def freeze_in_a_transaction(stage: Stage, chance: Random, node: Node) -> None:
    await _freeze(stage, chance, node, IN_A_TRANSACTION)


async def _freeze(stage: Stage, chance: Random, node: Node, point: Point | None) -> None:
    kind, whole = f"stop {node.role}", chance.random() < 0.5
    seconds = chance.uniform(*SECONDS[node.role])
    with stage.cluster.troubled(node, kind):
        began, struck_at = await strike_at(stage, node, point, lambda: node.freeze(whole=whole))
        try:
            detail = await stage.belongings(node) | {"whole": whole}
            await asyncio.sleep(seconds)
        finally:
            node.thaw()
        stage.note(kind, node.name, began, point=struck_at, detail=detail, lasted=True)
        await asyncio.sleep(AWAKE_SECONDS)


FREEZES: Final = (
    Strike.on(Role.SCHEDULER, "stop scheduler", 4, freeze),
    Strike.on(Role.SCHEDULER, "stop scheduler in a transaction", 2, freeze_in_a_transaction),
    Strike.on(Role.WORKER, "stop worker", 5, freeze),
    Strike.on(Role.API, "stop api in a transaction", 3, freeze_in_a_transaction),
)
