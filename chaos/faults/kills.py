"""SIGKILL, at any moment or when a node comes to a certain statement; after a pause the node is
started again."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Final

from chaos.faults.stage import Moment, Stage, Strike, strike_at
from chaos.node import Node, Role
from foliot.testing.points import Point, When

AT_A_POINT: Final = 0.6  # the part of the kills that waits for one
PAUSE_SECONDS: Final = (0.5, 3.0)
WHEN: Final[tuple[When, ...]] = ("before", "after")

POINTS: Final = {
    Role.SCHEDULER: (
        "jobs/fire_due",
        "jobs/stage_due",
        "shards/renew",
        "shards/read",
        "executions/release_due",
        "executions/release_overlaps",
        "executions/rescue",
        "limits/admit_held",
        "dependents/gather",
        "dependents/follow",
        "workers/bury_silent",
        "commit",
    ),
    Role.WORKER: (
        "executions/claim_ready",
        "executions/read_claimed",
        "executions/finish",
        "workers/beat",
        "workers/list_cancelled",
    ),
    Role.API: (
        "requests/begin",
        "requests/keep_answer",
        "executions/enqueue",
        "executions/cancel",
        "jobs/update",
        "jobs/pause",
        "commit",
    ),
}


def choose_point(role: Role, chance: Random) -> Point | None:
    when, statement = chance.choice(WHEN), chance.choice(POINTS[role])
    return Point(when, statement) if chance.random() < AT_A_POINT else None


async def kill(stage: Stage, chance: Random, node: Node) -> None:
    await _kill(stage, chance, node, f"kill {node.role}", node.kill)


async def kill_family(stage: Stage, chance: Random, node: Node) -> None:
    """The worker and every process it has started, at once: a machine that is gone."""
    await _kill(stage, chance, node, "kill worker group", node.kill_family)


async def kill_host(stage: Stage, chance: Random) -> None:
    """One process that runs handlers; its worker goes on."""
    node = chance.choice(stage.cluster.well(Role.WORKER))
    if not (hosts := node.hosts()):
        return
    pid, began = chance.choice(hosts), Moment()
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    stage.note("kill host", node.name, began, detail={"pid": pid})


async def _kill(
    stage: Stage, chance: Random, node: Node, kind: str, deed: Callable[[], None]
) -> None:
    point, cut = choose_point(node.role, chance), chance.random() < 0.5
    pause_seconds = chance.uniform(*PAUSE_SECONDS)
    with stage.cluster.troubled(node, kind):
        began, struck_at = await strike_at(stage, node, point, deed, cut=cut)
        belongings = await stage.belongings(node)
        stage.note(kind, node.name, began, point=struck_at, detail=belongings)
        if left := await node.gone():
            node.note(f"ERROR chaos {left} have outlived the process that started them")
        await asyncio.sleep(pause_seconds)
        await stage.cluster.start(node)


async def end(stage: Stage, chance: Random, node: Node) -> None:
    """Told to stop, as for an upgrade: it gives back what it holds."""
    kind, pause_seconds = f"end {node.role}", chance.uniform(*PAUSE_SECONDS)
    with stage.cluster.troubled(node, kind):
        began, belongings = Moment(), await stage.belongings(node)
        await node.end()
        stage.note(kind, node.name, began, detail=belongings, lasted=True)
        await asyncio.sleep(pause_seconds)
        await stage.cluster.start(node)


ENDS: Final = (
    Strike.on(Role.SCHEDULER, "end scheduler", 4, end),
    Strike.on(Role.WORKER, "end worker", 4, end),
)
KILLS: Final = (
    Strike.on(Role.SCHEDULER, "kill scheduler", 32, kill),
    Strike.on(Role.WORKER, "kill worker", 22, kill),
    Strike.on(Role.WORKER, "kill worker group", 12, kill_family),
    Strike("kill host", 10, lambda stage: bool(stage.cluster.well(Role.WORKER)), kill_host),
    Strike.on(Role.API, "kill api", 10, kill),
)
