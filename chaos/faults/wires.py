"""The way between a node and the database: connections that are reset, answers that are lost, a way
that swallows everything without a word, and one that is slow."""

import asyncio
from contextlib import suppress
from random import Random
from typing import Final

from chaos.faults.stage import Moment, Stage, Strike
from chaos.node import Node, Role

# Longer than a lease of 10 s and than the 15 s after which a worker is dead.
SILENT_SECONDS: Final = {
    Role.SCHEDULER: (12.0, 17.0),
    Role.WORKER: (17.0, 21.0),
    Role.API: (2.0, 6.0),
}
# A command on a connection that has died without a word is given up after 10 s.
STRANDED_SECONDS: Final = 11.0
BACK_SECONDS: Final = 4.0
SLOW_SECONDS: Final = (5.0, 15.0)
DELAY_SECONDS: Final = (0.02, 0.2)
COMMIT_SECONDS: Final = 10.0

COMMITS: Final = {
    Role.SCHEDULER: (
        "jobs/fire_due",
        "shards/renew",
        "shards/take",
        "executions/release_due",
        "executions/rescue",
        "limits/admit_held",
        "commit",
    ),
    Role.WORKER: ("executions/claim_ready", "executions/finish", "workers/beat"),
    Role.API: ("executions/enqueue", "executions/cancel", "requests/keep_answer", "commit"),
}


def _living(stage: Stage) -> list[Node]:
    """Such harm is over at once: also the last worker that is well can bear it. A scheduler judges
    nobody for a while afterwards, so another has to."""
    cluster = stage.cluster
    return [*cluster.well(Role.WORKER), *cluster.well(Role.API), *cluster.spare(Role.SCHEDULER)]


async def reset(stage: Stage, chance: Random) -> None:
    node = chance.choice(_living(stage))
    began = Moment()
    stage.cluster.proxies[node.name].reset()
    node.unsettle()
    stage.note("reset", node.name, began, detail={"id": node.identity})


async def lose_commit(stage: Stage, chance: Random) -> None:
    """The next one of this statement is carried out, and its answer never comes."""
    node = chance.choice(_living(stage))
    statement = chance.choice(COMMITS[node.role])
    strike = stage.cluster.proxies[node.name].lose_next_commit_answer(statement)
    with suppress(TimeoutError):
        async with asyncio.timeout(COMMIT_SECONDS):
            await strike.struck.wait()
        node.unsettle()
        detail = {"id": node.identity}
        stage.note("lose commit", node.name, Moment(), point=str(strike.point), detail=detail)


async def strand(stage: Stage, _: Random, node: Node) -> None:
    with stage.cluster.troubled(node, "strand"):
        began = Moment()
        stage.cluster.proxies[node.name].strand()
        await asyncio.sleep(STRANDED_SECONDS)
        stage.note("strand", node.name, began, detail={"id": node.identity}, lasted=True)


async def black_hole(stage: Stage, chance: Random, node: Node) -> None:
    proxy, seconds = stage.cluster.proxies[node.name], chance.uniform(*SILENT_SECONDS[node.role])
    with stage.cluster.troubled(node, "black hole"):
        detail, began = await stage.belongings(node), Moment()
        proxy.fall_silent()
        try:
            await asyncio.sleep(seconds)
        finally:
            proxy.speak()
        stage.note("black hole", node.name, began, detail=detail, lasted=True)
        await asyncio.sleep(BACK_SECONDS)


async def slow_network(stage: Stage, chance: Random) -> None:
    node = chance.choice(_living(stage))
    proxy, began = stage.cluster.proxies[node.name], Moment()
    delay, seconds = chance.uniform(*DELAY_SECONDS), chance.uniform(*SLOW_SECONDS)
    proxy.slow(delay)
    try:
        await asyncio.sleep(seconds)
    finally:
        proxy.slow(0)
    detail = {"id": node.identity, "seconds": delay}
    stage.note("slow network", node.name, began, detail=detail, lasted=True)


def _somebody_lives(stage: Stage) -> bool:
    return bool(_living(stage))


WIRES: Final = (
    Strike("reset", 7, _somebody_lives, reset),
    Strike("lose commit", 6, _somebody_lives, lose_commit),
    Strike("slow network", 3, _somebody_lives, slow_network),
    Strike.on(Role.SCHEDULER, "strand scheduler", 1, strand),
    Strike.on(Role.WORKER, "strand worker", 1, strand),
    Strike.on(Role.SCHEDULER, "black hole scheduler", 2, black_hole),
    Strike.on(Role.WORKER, "black hole worker", 2, black_hole),
    Strike.on(Role.API, "black hole api", 1, black_hole),
)
