"""Who takes part in the drain, and by what rules: the same for our worker and for the peers.

Everybody gets a fresh server for each run: the embedded one as shipped, fsync on. The queue is
filled by the entrant's own bulk call, then the database is vacuumed and a checkpoint taken, then a
new process drains it. The clock runs from when that process sets to work until a look at the
database finds nothing left to do; what is started before and stopped after that does not count.
"""

import asyncio
import json
import os
from dataclasses import dataclass
from typing import Final, Protocol

import asyncpg

from bench.peers.environments import (
    Environment,
    NotMeasured,
    in_go,
    in_node,
    in_python,
    last_line,
    provide,
)
from bench.servers import embedded, settle

LIMIT_SECONDS: Final = 120


@dataclass(frozen=True)
class Rates:
    """Jobs per second into the queue, and from a full queue to done."""

    fill: float | None
    drain: float


class Entrant(Protocol):
    """`keeps`: what is left in the database of a job that is over."""

    @property
    def name(self) -> str: ...

    @property
    def keeps(self) -> str: ...

    async def prepare(self) -> None:
        """Whatever need not be done again for each run; raises NotMeasured."""

    async def run(self, part: int = 1) -> Rates:
        """With so small a part of the jobs; raises NotMeasured."""


@dataclass(frozen=True)
class Peer:
    """A program of ours on a peer's library. `jobs` are about as many as it does in four seconds;
    `kept` counts what it says it keeps."""

    environment: Environment
    jobs: int
    table: str
    keeps: str
    kept: str | None = None

    @property
    def name(self) -> str:
        return self.environment.name

    async def prepare(self) -> None:
        await asyncio.to_thread(provide, self.environment)

    async def run(self, part: int = 1) -> Rates:
        jobs = self.jobs // part
        async with embedded() as server:
            filled = await self._do("fill", jobs, server.url)
            await settle(server, [self.table])
            drained = await self._do("drain", jobs, server.url)
            await self._check(jobs, server.url)
        return Rates(filled, drained)

    async def _do(self, verb: str, jobs: int, url: str) -> float:
        """Jobs per second, as the program says in its last line."""
        process = await asyncio.create_subprocess_exec(
            *self.environment.run,
            verb,
            str(jobs),
            env=os.environ | {"DATABASE_URL": url},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(LIMIT_SECONDS):
                output, errors = await process.communicate()
        except TimeoutError:
            raise NotMeasured(f"{verb} took more than {LIMIT_SECONDS} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            raise NotMeasured(f"{verb} failed: {last_line(errors.decode())}")
        return float(json.loads(last_line(output.decode()))["per_s"])

    async def _check(self, jobs: int, url: str) -> None:
        if self.kept is None:
            return
        db = await asyncpg.connect(url)
        found = await db.fetchval(self.kept)
        await db.close()
        if found != jobs:
            raise NotMeasured(f"it keeps {found} of {jobs} jobs")


PGQUEUER: Final = Peer(
    in_python("pgqueuer"),
    jobs=40_000,
    table="pgqueuer",
    keeps="a log of each change of its status",
    kept="select count(*) from pgqueuer_log where status = 'successful'",
)
GRAPHILE: Final = Peer(
    in_node("graphile"), jobs=60_000, table="graphile_worker._private_jobs", keeps="nothing"
)
PROCRASTINATE: Final = Peer(
    in_python("procrastinate"),
    jobs=1_000,
    table="procrastinate_jobs",
    keeps="the row and a log of each change of its status",
    kept="select count(*) from procrastinate_jobs where status = 'succeeded'",
)
RIVER: Final = Peer(
    in_go("river"),
    jobs=40_000,
    table="river_job",
    keeps="the row, for a day",
    kept="select count(*) from river_job where state = 'completed'",
)
PEERS: Final = (PGQUEUER, GRAPHILE, PROCRASTINATE, RIVER)
