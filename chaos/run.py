"""A run from its first process to the facts it leaves behind: a system that works, a workload, the
nemesis beside it; then everything heals, schedules are paused, and what is under way comes to its
end or is found not to."""

import asyncio
import sys
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Final

from chaos.asking import Asker, asking
from chaos.cluster import Size, running
from chaos.facts import Facts
from chaos.faults.stage import Stage
from chaos.gathering import Course, gather
from chaos.nemesis import Nemesis
from chaos.record import SINK_FILE, Recorder
from chaos.sampling import sample_until
from chaos.watched_server import watched_server
from chaos.workload import Address, Known, calm, plan_jobs, run, set_up

# Work goes on for so long without a fault; then nothing new begins.
CALM_SECONDS: Final = 8.0
# The longest way to an end: a worker that died last is found dead after 15 s, twice that after an
# outage, and what it held is tried again a few times.
OVER_SECONDS: Final = 120.0
LOOK_SECONDS: Final = 0.5
TELL_SECONDS: Final = 10.0

INSTANTS: Final = """
select (select coalesce(sum(fired_count), 0) from foliot.jobs)::bigint
     + (select coalesce(sum(count), 0) from foliot.skips)::bigint as instants"""
LEFT: Final = """
select (select count(*) from foliot.executions)
     + (select count(*) from foliot.jobs
         where status = 'ACTIVE' and next_instant <= clock_timestamp()) as rows"""


@dataclass(frozen=True, slots=True)
class Options:
    seed: int
    seconds: float
    size: Size
    rate: float  # instants a second
    intensity: float


async def run_all(options: Options, folder: Path) -> Facts:
    began_at = datetime.now(UTC)
    chance = Random(options.seed)  # noqa: S311 - seeded
    async with AsyncExitStack() as stack:
        recorder = stack.enter_context(Recorder(folder))
        server = await stack.enter_async_context(watched_server(folder))
        asker = await stack.enter_async_context(asking(server.admin_url))
        cluster = await stack.enter_async_context(
            running(server, folder, options.size, chance, recorder)
        )
        stage = Stage(cluster, asker, recorder)
        calm_at, calm_moment = await _live(stage, options, folder)
        await cluster.end()
        course = Course(options.seed, began_at, calm_at, calm_moment)
        return await gather(server.admin_url, folder, course)


async def _live(stage: Stage, options: Options, folder: Path) -> tuple[datetime, float]:
    """All of the work and of the harm; when the last fault was over."""
    cluster = stage.cluster
    api = Address(lambda: cluster.url, cluster.key)
    plan = plan_jobs(options.seed, options.rate, cluster.target)
    known = await set_up(api, plan, stage.recorder.exchange)
    nemesis = Nemesis(stage, options.seed, options.intensity)
    ended, stop = asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        nodes = cluster.nodes.values()
        group.create_task(sample_until(ended, stage.asker, nodes, stage.recorder))
        telling = group.create_task(_tell(stage.asker, nemesis, folder))
        reviving = group.create_task(cluster.revive())
        working = group.create_task(run(api, known, stop, stage.recorder.exchange))
        await nemesis.run(options.seconds)
        calm_at, calm_moment = datetime.now(UTC), time.monotonic()
        await asyncio.sleep(CALM_SECONDS)
        stop.set()
        await working
        await _come_to_an_end(api, known, stage)
        telling.cancel()
        reviving.cancel()
        ended.set()
    return calm_at, calm_moment


async def _come_to_an_end(api: Address, known: Known, stage: Stage) -> None:
    """What does not is left for the checker to find."""
    await calm(api, known, stage.recorder.exchange)
    end = time.monotonic() + OVER_SECONDS
    while time.monotonic() < end:
        (row,) = await stage.asker.fetch(LEFT)
        if row["rows"] == 0:
            return
        await asyncio.sleep(LOOK_SECONDS)


async def _tell(asker: Asker, nemesis: Nemesis, folder: Path) -> None:
    began = time.monotonic()
    while True:
        await asyncio.sleep(TELL_SECONDS)
        (row,) = await asker.fetch(INSTANTS)
        say(
            f"{time.monotonic() - began:>6.0f} s  faults {nemesis.struck.total():>4}"
            f"  kills {nemesis.kills:>4}  instants {row['instants']:>8,}"
            f"  effects {_count_lines(folder / SINK_FILE):>8,}"
        )


def _count_lines(path: Path) -> int:
    if not path.exists():
        return 0
    with path.open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
