"""Workers as the database knows them: a row that a heartbeat renews, and no way back from DEAD.

A worker's id is fresh at every start. A heartbeat says what the worker has begun and brings back
what the tables think it holds; the difference, seen twice, is a claim whose reply was lost.
A worker that learns it is DEAD or gone stops what it runs and registers anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from foliot.core.ids import ExecutionId, TenantId, WorkerId
from foliot.core.model import TargetType
from foliot.core.states import WorkerState
from foliot.store.database import Database
from foliot.store.statements import statement

_REGISTER: Final = statement("workers/register")
_BEAT: Final = statement("workers/beat")
_DRAIN: Final = statement("workers/drain")
_DEREGISTER: Final = statement("workers/deregister")
_BURY_SILENT: Final = statement("workers/bury_silent")
_READ_HEARING: Final = statement("workers/read_hearing")
_LIST_CANCELLED: Final = statement("workers/list_cancelled")
_COUNT_SHARING: Final = statement("workers/count_sharing")

SILENT_SECONDS_MAX: Final = 15.0
# Stands for all HTTP targets that go on with an execution by themselves; a row without a process.
REMOTE: Final = WorkerId(UUID("00000000-0000-8000-8000-00000000ca11"))


@dataclass(frozen=True, slots=True)
class WorkerProfile:
    """What a worker is and can do; a worker of a tenant serves that tenant alone."""

    name: str
    host: str
    version: str
    queues: Sequence[str]
    capacity: int
    tenant_id: TenantId | None = None
    labels: Sequence[str] = ()
    region: str | None = None
    handlers: Sequence[str] = ()
    target_types: Sequence[TargetType] = (TargetType.HANDLER,)


@dataclass(frozen=True, slots=True)
class Held:
    """An execution that names the worker."""

    execution_id: ExecutionId
    fence: int
    cancel_requested: bool


@dataclass(frozen=True, slots=True)
class Beat:
    """The answer to a heartbeat."""

    status: WorkerState
    held: tuple[Held, ...]


async def register(
    database: Database,
    worker_id: WorkerId,
    profile: WorkerProfile,
    now: datetime | None = None,
) -> None:
    """A new row under a new id. A reply that is lost leaves a row that dies of silence."""
    await database.execute(
        _REGISTER,
        worker_id,
        profile.tenant_id,
        profile.name,
        profile.host,
        profile.version,
        sorted(profile.queues),
        sorted(profile.labels),
        profile.region,
        sorted(profile.handlers),
        sorted(str(each) for each in profile.target_types),
        profile.capacity,
        now,
    )


async def beat(
    database: Database,
    worker_id: WorkerId,
    started: Sequence[ExecutionId],
    now: datetime | None = None,
) -> Beat | None:
    """None if the worker is dead to everyone else: its row is gone, or DEAD."""
    row = await database.fetch_row(_BEAT, worker_id, list(started), now)
    if row is None:
        return None
    held = zip(row["ids"], row["fences"], row["cancelled"], strict=True)
    return Beat(
        WorkerState(row["status"]),
        tuple(Held(ExecutionId(each), fence, cancelled) for each, fence, cancelled in held),
    )


async def list_cancelled(
    database: Database, worker_id: WorkerId, running: Sequence[ExecutionId]
) -> tuple[Held, ...]:
    """What of this the worker is asked to stop: the part of a heartbeat's answer that hurries."""
    rows = await database.fetch(_LIST_CANCELLED, worker_id, list(running))
    return tuple(Held(ExecutionId(row["id"]), row["fence"], True) for row in rows)


async def count_sharing(database: Database, queues: Sequence[str]) -> int:
    """How many workers take from one of these queues."""
    return int(await database.fetch_value(_COUNT_SHARING, list(queues)))


async def drain(database: Database, worker_id: WorkerId) -> bool:
    """No claim from here on; False if it was not ACTIVE."""
    return await database.execute(_DRAIN, worker_id) == 1


async def deregister(
    database: Database, worker_id: WorkerId, started: Sequence[ExecutionId] = ()
) -> bool:
    """The worker has stopped; `started` is what it could not finish or hand back."""
    return await database.execute(_DEREGISTER, worker_id, list(started)) == 1


async def bury_silent(
    database: Database, silent_seconds: float = SILENT_SECONDS_MAX, now: datetime | None = None
) -> tuple[WorkerId, ...]:
    """Workers that were silent for longer than `silent_seconds` are DEAD from now on."""
    rows = await database.fetch(_BURY_SILENT, silent_seconds, now)
    return tuple(WorkerId(row["id"]) for row in rows)


async def read_hearing(database: Database, now: datetime | None = None) -> datetime:
    """What time it is, as one who can hear: it fails where a heartbeat or an end could not be
    written. Ask before silence is held against anybody."""
    told: datetime = await database.fetch_value(_READ_HEARING, now)
    return told
