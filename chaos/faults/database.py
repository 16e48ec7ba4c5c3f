"""The database itself: stopped as by a crash and started again, at once or after so long that who
could not write looks dead; one of its processes killed (it then ends all connections and recovers);
and a snapshot that keeps every dead row from being removed."""

import asyncio
import os
import signal
from contextlib import suppress
from random import Random
from typing import Final

from chaos.asking import NO_ANSWER, connect
from chaos.facts import LONG_OUTAGE
from chaos.faults.stage import Moment, Stage, Strike

PAUSE_SECONDS: Final = (0.0, 2.0)
# Longer than the 15 s of silence after which a worker is dead.
LONG_SECONDS: Final = (16.0, 20.0)
PINNED_SECONDS: Final = (15.0, 30.0)
NOTICED_SECONDS: Final = 10.0
LOOK_SECONDS: Final = 0.02
BACKENDS: Final = (
    "select pid from pg_stat_activity where usename = 'foliot' and backend_type = 'client backend'"
    " order by pid"
)
PIN: Final = "select from foliot.executions limit 1"


def _is_up(stage: Stage) -> bool:
    return stage.cluster.server.pid is not None and not stage.database_turn.locked()


async def restart(stage: Stage, chance: Random) -> None:
    async with stage.database_turn:
        began = Moment()
        await stage.cluster.restart_database(chance.uniform(*PAUSE_SECONDS))
        stage.note("restart database", "", began, lasted=True)


async def go_away(stage: Stage, chance: Random) -> None:
    """For so long that nobody could be heard. Afterwards no scheduler judges for a while."""
    async with stage.database_turn:
        began = Moment()
        await stage.cluster.restart_database(chance.uniform(*LONG_SECONDS))
        for node in stage.cluster.nodes.values():
            node.unsettle()
        stage.note(LONG_OUTAGE, "", began, lasted=True)


async def kill_backend(stage: Stage, chance: Random) -> None:
    """The server notices, ends every connection, ours among them, and recovers."""
    async with stage.database_turn:
        rows = await stage.asker.fetch(BACKENDS)
        if not rows:
            return
        witness = await connect(stage.cluster.server.admin_url)
        pid, began = chance.choice([row["pid"] for row in rows]), Moment()
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        for _ in range(int(NOTICED_SECONDS / LOOK_SECONDS)):
            if witness.is_closed():
                break
            await asyncio.sleep(LOOK_SECONDS)
        witness.terminate()
        await stage.asker.fetch("select 1")
        stage.note("kill backend", "", began, detail={"pid": pid}, lasted=True)


async def pin_snapshot(stage: Stage, chance: Random) -> None:
    """It ends early if the database does."""
    seconds, began = chance.uniform(*PINNED_SECONDS), Moment()
    with suppress(*NO_ANSWER):
        pinning = await connect(stage.cluster.server.admin_url)
        try:
            async with pinning.transaction(isolation="repeatable_read"):
                await pinning.fetch(PIN)
                await asyncio.sleep(seconds)
        finally:
            pinning.terminate()
    stage.note("pin snapshot", "", began, lasted=True)


DATABASE: Final = (
    Strike("restart database", 2.5, _is_up, restart),
    Strike("kill backend", 1.5, _is_up, kill_backend),
    Strike("pin snapshot", 2, _is_up, pin_snapshot),
)
