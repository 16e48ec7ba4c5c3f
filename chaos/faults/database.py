"""The database itself: stopped as by a crash and started again; one of its processes killed (it
then ends all connections and recovers); standing still, as on a disk that hangs; a table that
somebody has locked; and a snapshot that keeps every dead row from being removed.

Now and then it is away, stands still or is locked for so long that who could not write looks dead.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from random import Random
from typing import Any, Final, Literal

from chaos.asking import NO_ANSWER, connect
from chaos.facts import LONG_OUTAGE, STALL, STALLED
from chaos.faults.stage import Moment, Stage, Strike
from chaos.node import family, send_signal

Isolation = Literal["read_committed", "repeatable_read"]

PAUSE_SECONDS: Final = (0.0, 2.0)
STALL_SECONDS: Final = (2.0, 8.0)
LOCK_SECONDS: Final = (2.0, 8.0)
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
# What is wanted by whoever changes a table; everybody who comes later waits behind it. It is not
# waited for as long as a snapshot may be pinned.
LOCK: Final = "set local lock_timeout = '3s'; lock table foliot.{table} in {mode} mode"
TABLES: Final = (
    "workers",
    "executions",
    "attempts",
    "shard_leases",
    "jobs",
    "queue_clocks",
    "dead_letters",
    "deliveries",
)
MODES: Final = ("share", "access exclusive")


def _is_up(stage: Stage) -> bool:
    return stage.cluster.server.pid is not None and not stage.database_turn.locked()


async def restart(stage: Stage, chance: Random) -> None:
    async with stage.database_turn:
        began = Moment()
        await stage.cluster.restart_database(chance.uniform(*PAUSE_SECONDS))
        stage.note("restart database", "", began, lasted=True)


async def stall(stage: Stage, chance: Random) -> None:
    async with stage.database_turn:
        began = Moment()
        await _stand_still(stage, chance.uniform(*STALL_SECONDS))
        stage.note(STALL, "", began, lasted=True)


async def _stand_still(stage: Stage, seconds: float) -> None:
    """All its processes, at whatever they were: nothing is lost, and nothing moves."""
    if (server := stage.cluster.server.pid) is None:
        return
    try:
        send_signal(server, signal.SIGSTOP)  # first, so that it starts no other
        for pid in family(server):
            send_signal(pid, signal.SIGSTOP)
        await asyncio.sleep(seconds)
    finally:
        for pid in (*family(server), server):
            send_signal(pid, signal.SIGCONT)


async def lock_table(stage: Stage, chance: Random) -> None:
    table, mode = chance.choice(TABLES), chance.choice(MODES)
    began = Moment()
    await _hold_locked(stage, table, mode, chance.uniform(*LOCK_SECONDS))
    stage.note("lock table", "", began, detail={"table": table, "mode": mode}, lasted=True)


async def _hold_locked(stage: Stage, table: str, mode: str, seconds: float) -> None:
    """It does not begin while another is in the way."""
    await _hold_open(stage, LOCK.format(table=table, mode=mode), seconds)


async def _hold_open(
    stage: Stage, statement: str, seconds: float, isolation: Isolation = "read_committed"
) -> None:
    """A transaction that stays open after its statement. It ends early if the database does."""
    with suppress(*NO_ANSWER):
        holding = await connect(stage.cluster.server.admin_url)
        try:
            async with holding.transaction(isolation=isolation):
                await holding.execute(statement)
                await asyncio.sleep(seconds)
        finally:
            holding.terminate()


async def be_away(stage: Stage, chance: Random) -> None:
    """For so long that nobody could be heard. Afterwards no scheduler judges for a while."""
    async with stage.database_turn:
        began, seconds = Moment(), chance.uniform(*LONG_SECONDS)
        how = chance.choice(tuple(WAYS_TO_BE_AWAY))
        await WAYS_TO_BE_AWAY[how](stage, seconds)
        for node in stage.cluster.nodes.values():
            node.unsettle()
        stage.note(LONG_OUTAGE, "", began, detail={"how": how}, lasted=True)


async def _go_away(stage: Stage, seconds: float) -> None:
    await stage.cluster.restart_database(seconds)


async def _refuse_to_hear(stage: Stage, seconds: float) -> None:
    """No heartbeat and no renewal is written, and all can be read meanwhile."""
    await _hold_locked(stage, "workers, foliot.shard_leases", "share", seconds)


WAYS_TO_BE_AWAY: Final[dict[str, Callable[[Stage, float], Coroutine[Any, Any, None]]]] = {
    "gone": _go_away,
    STALLED: _stand_still,
    "locked": _refuse_to_hear,
}


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
    seconds, began = chance.uniform(*PINNED_SECONDS), Moment()
    await _hold_open(stage, PIN, seconds, "repeatable_read")
    stage.note("pin snapshot", "", began, lasted=True)


DATABASE: Final = (
    Strike("restart database", 2.5, _is_up, restart),
    Strike("kill backend", 1.5, _is_up, kill_backend),
    Strike(STALL, 2, _is_up, stall),
    Strike("lock table", 2, _is_up, lock_table),
    Strike("pin snapshot", 2, _is_up, pin_snapshot),
)
