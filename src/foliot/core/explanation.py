"""What is known of an execution that is not over, and what is told of it: facts in, reasons out.

The facts are those of one moment, read together. A reason is told in words with its number, how to
be rid of it, and until when it holds if that is known.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from foliot.core.ids import ExecutionId, JobId, TenantId, WorkerId
from foliot.core.model import Json
from foliot.core.serving import NOBODY, Lane, Workforce
from foliot.core.states import ExecutionState, JobState, WorkerState


class Code(StrEnum):
    JOB_DELETED = "JOB_DELETED"
    NOT_DUE = "NOT_DUE"
    BACKOFF = "BACKOFF"
    BREAKER = "BREAKER"
    PARENT = "PARENT"
    EVENT = "EVENT"
    OVERLAP = "OVERLAP"
    CONCURRENCY = "CONCURRENCY"
    RATE = "RATE"
    NOT_RELEASED = "NOT_RELEASED"
    QUEUE_PAUSED = "QUEUE_PAUSED"
    NO_WORKER = "NO_WORKER"
    WORKERS_FULL = "WORKERS_FULL"
    IN_LINE = "IN_LINE"
    RUNNING = "RUNNING"
    HANDED_OVER = "HANDED_OVER"
    FINISHED = "FINISHED"


class Hold(StrEnum):
    """What a WAITING execution waits for."""

    OVERLAP = "OVERLAP"
    LIMIT = "LIMIT"
    EVENT = "EVENT"
    PARENT = "PARENT"
    BREAKER = "BREAKER"


@dataclass(frozen=True, slots=True)
class Reason:
    code: Code
    message: str
    way_out: str
    until: datetime | None = None
    details: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Explanation:
    """What must go first comes first."""

    execution_id: ExecutionId
    status: ExecutionState
    summary: str
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Holder:
    """An execution that another one waits for."""

    execution_id: ExecutionId
    job_name: str
    status: ExecutionState
    since: datetime
    worker: str | None


@dataclass(frozen=True, slots=True)
class LimitUse:
    """How much of a limit is taken: `slots` of `max_running`, `used` of `rate_count`."""

    key: str
    max_running: int | None
    slots: int
    rate_count: int | None
    rate_seconds: float | None
    used: int
    opens_at: datetime | None
    holders: tuple[Holder, ...] = ()


@dataclass(frozen=True, slots=True)
class QueueState:
    paused_at: datetime | None = None
    note: str | None = None
    at_most: int | None = None
    used: int = 0
    holders: tuple[Holder, ...] = ()


@dataclass(frozen=True, slots=True)
class Keeper:
    """In whose hands it is; without a process, it is with the target that took it over."""

    worker_id: WorkerId
    name: str
    status: WorkerState
    last_heartbeat_at: datetime
    is_process: bool


@dataclass(frozen=True, slots=True)
class SchedulerSigns:
    live: int = 0
    last_seen_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """`ready`: it could be claimed at any moment. `ahead`: how many go before it, counted up to
    a number, of which `own_ahead` are its tenant's; `alike`: how many wait for the same limits."""

    moment: datetime
    execution_id: ExecutionId
    tenant_id: TenantId
    job_id: JobId
    job_name: str
    status: ExecutionState
    available_at: datetime
    attempt_number: int
    max_attempts: int
    timeout_seconds: float
    ready: bool = False
    hold: Hold | None = None
    hold_detail: str | None = None
    queued_at: datetime | None = None
    start_by: datetime | None = None
    claimed_at: datetime | None = None
    cancel_requested_at: datetime | None = None
    progress: Json = None
    dag_run_id: UUID | None = None
    job_status: JobState | None = None
    error: Json = None
    worker: Keeper | None = None
    lane: Lane | None = None
    queue: QueueState | None = None
    workers: Workforce = NOBODY
    schedulers: SchedulerSigns = SchedulerSigns()
    under_way: tuple[Holder, ...] = ()
    limits: tuple[LimitUse, ...] = ()
    alike: int = 0
    ahead: int = 0
    own_ahead: int = 0


@dataclass(frozen=True, slots=True)
class Ending:
    """How an execution ended."""

    execution_id: ExecutionId
    status: ExecutionState
    finished_at: datetime | None
    attempt_number: int
    error: Json = None
    dead_letter_id: UUID | None = None
