"""A worker takes its next executions, and afterwards reads what it took.

The claim is one call that commits by itself and returns ids and fences only: a worker that freezes
while it reads holds no lock, and a reply that is lost leaves rows that the next heartbeats find.
"""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Final

import asyncpg
import msgspec

from foliot.core.ids import ExecutionId, JobId, TenantId, WorkerId
from foliot.core.model import Json, RetryPolicy, Target, Trigger
from foliot.core.storable import INTEGER_MAX, INTEGER_MIN
from foliot.store.database import Database
from foliot.store.definitions import retry_policy_from_json, target_from_json
from foliot.store.statements import statement

log = logging.getLogger(__name__)

_CLAIM_READY: Final = statement("executions/claim_ready")
_READ_CLAIMED: Final = statement("executions/read_claimed")

# Of an integer of 64 bits, with its sign.
_DIGITS_MAX: Final = 20
TIMEOUT_SECONDS: Final = 300.0
CANCEL_GRACE_SECONDS: Final = 30.0
_HOLDING: Final = frozenset({"QUEUE_ONE", "QUEUE_ALL", "CANCEL_PREVIOUS"})


class Look(Enum):
    """A row is nearly always committed within a second of being ranked, and always within ten."""

    NEAR = "NEAR"
    FAR = "FAR"
    EVERYWHERE = "EVERYWHERE"


BACK_SECONDS: Final = {Look.NEAR: 1.0, Look.FAR: 10.0, Look.EVERYWHERE: None}


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """What a worker wants: at most `bite` rows of a queue, from the lanes it can serve.

    `look` says how far below the queue's mark rows are looked for: NEAR most of the time, FAR once
    a second, EVERYWHERE once in ten.
    """

    worker_id: WorkerId
    queue: str
    lane_ids: Sequence[int]
    bite: int
    look: Look = Look.FAR


@dataclass(frozen=True, slots=True)
class Claim:
    """One execution, ours until it is finished or rescued; `fence` proves it."""

    execution_id: ExecutionId
    fence: int
    rank: float


@dataclass(frozen=True, slots=True)
class Instructions:
    """What a job's version says about running it."""

    target: Target
    retry_policy: RetryPolicy
    timeout_seconds: float
    cancel_grace_seconds: float
    holds_overlaps: bool = False  # a scheduled execution may wait for the one before it to end


class ClaimedExecution(msgspec.Struct, frozen=True):
    """All that is needed to run one attempt.

    Without `instructions` the version cannot be read here (a newer Foliot wrote it): the attempt
    fails, its neighbours do not.
    """

    execution_id: ExecutionId
    fence: int
    tenant_id: TenantId
    job_id: JobId
    job_name: str
    tags: tuple[str, ...]
    labels: Mapping[str, str]
    trigger: Trigger
    queue: str
    scheduled_time: datetime
    available_at: datetime
    claimed_at: datetime
    attempt_number: int
    crash_count: int
    run_alone: bool
    cancel_requested_at: datetime | None
    idempotency_key: str
    trace_id: str | None
    payload: Json
    instructions: Instructions | None
    limited: bool = False  # it takes up room under a limit
    followed: bool = False  # other jobs fire when this one has ended
    payload_is_jobs: bool = True  # and none that came with a request


async def claim(
    database: Database, request: ClaimRequest, now: datetime | None = None
) -> tuple[Claim, ...]:
    """The first rows by rank; none for a worker that is not ACTIVE and for a paused queue."""
    if request.bite < 1 or not request.lane_ids:
        return ()
    rows = await database.fetch(
        _CLAIM_READY,
        request.worker_id,
        request.queue,
        list(request.lane_ids),
        request.bite,
        BACK_SECONDS[request.look],
        now,
    )
    return tuple(Claim(ExecutionId(row["id"]), row["fence"], row["rank"]) for row in rows)


async def read_claimed(
    database: Database, worker_id: WorkerId, claims: Sequence[Claim]
) -> tuple[ClaimedExecution, ...]:
    """In the order of `claims`, without those that are no longer ours or that cannot be read here
    (a newer Foliot wrote them): the heartbeats hand those back."""
    rows = await database.fetch(
        _READ_CLAIMED,
        worker_id,
        [claim.execution_id for claim in claims],
        [claim.fence for claim in claims],
    )
    instructions = _read_each_once(row["definition"] for row in rows)
    found: dict[ExecutionId, ClaimedExecution] = {}
    for row in rows:
        try:
            found[row["id"]] = _claimed(row, instructions[row["definition"]])
        except ValueError:
            log.exception("execution %s cannot be read here", row["id"])
    return tuple(found[claim.execution_id] for claim in claims if claim.execution_id in found)


def _read_each_once(definitions: Iterable[str | None]) -> dict[str | None, Instructions | None]:
    """A herd shares a few definitions: each is parsed once."""
    return {text: read_instructions(text) for text in set(definitions)}


def read_instructions(definition: str | None) -> Instructions | None:
    """None if there is no version, or none that this Foliot understands."""
    if definition is None:
        return None
    written = json.loads(definition)
    try:
        return Instructions(
            target=target_from_json(written["target"]),
            retry_policy=retry_policy_from_json(written.get("retry_policy") or {}),
            timeout_seconds=float(written.get("timeout_seconds", TIMEOUT_SECONDS)),
            cancel_grace_seconds=float(written.get("cancel_grace_seconds", CANCEL_GRACE_SECONDS)),
            holds_overlaps=(written.get("schedule") or {}).get("overlap_policy") in _HOLDING,
        )
    except (KeyError, TypeError, ValueError):
        return None


def _claimed(row: asyncpg.Record, instructions: Instructions | None) -> ClaimedExecution:
    execution_id = ExecutionId(row["id"])
    return ClaimedExecution(
        execution_id=execution_id,
        fence=row["fence"],
        tenant_id=TenantId(row["tenant_id"]),
        job_id=JobId(row["job_id"]),
        job_name=row["job_name"],
        tags=tuple(row["tags"] or ()),
        labels=row["labels"] or {},
        trigger=Trigger(row["trigger"]),
        queue=row["queue"],
        scheduled_time=row["scheduled_time"],
        available_at=row["available_at"],
        claimed_at=row["claimed_at"],
        attempt_number=row["attempt_number"],
        crash_count=row["crash_count"],
        run_alone=row["run_alone"],
        cancel_requested_at=row["cancel_requested_at"],
        idempotency_key=row["idempotency_key"] or str(execution_id),
        trace_id=row["trace_id"],
        # Parsed for each: a handler may change what it is given.
        payload_is_jobs=row["payload_is_jobs"],
        payload=None if row["payload"] is None else _PAYLOADS.decode(row["payload"]),
        instructions=instructions,
        limited=row["limited"],
        followed=row["followed"],
    )


def _integer(digits: str) -> int | float:
    """jsonb writes 1e300 out in full: what no integer of ours can be was a float."""
    if len(digits) <= _DIGITS_MAX and INTEGER_MIN <= int(digits) <= INTEGER_MAX:
        return int(digits)
    return float(digits)


_PAYLOADS: Final = json.JSONDecoder(parse_int=_integer)
