"""The nouns, frozen. Field names are those of the REST contract and of the tables.

Nothing here validates or computes: `schedule`, `retry`, `rank`, `limits` and `dag` do that.
Times are aware datetimes in UTC, exact to the microsecond; durations are in seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from foliot.core.ids import ExecutionId, JobId, TenantId, WorkerId
from foliot.core.states import ExecutionState, JobState

Json = Any  # what json.loads returns: checked for storability at the door, opaque to every rule


class ScheduleType(StrEnum):
    CRON = "CRON"
    INTERVAL = "INTERVAL"
    ONE_TIME = "ONE_TIME"
    DELAYED = "DELAYED"
    IMMEDIATE = "IMMEDIATE"
    MANUAL = "MANUAL"
    AFTER = "AFTER"


class DstGap(StrEnum):
    """What a local time does that the spring night leaves out."""

    RUN_AFTER_GAP = "RUN_AFTER_GAP"
    SKIP = "SKIP"


class DstOverlap(StrEnum):
    """Which of the two a local time means that the autumn night has twice."""

    FIRST = "FIRST"
    LAST = "LAST"
    BOTH = "BOTH"


class MisfirePolicy(StrEnum):
    FIRE_ONCE = "FIRE_ONCE"
    FIRE_ALL = "FIRE_ALL"
    SKIP = "SKIP"


class OverlapPolicy(StrEnum):
    SKIP = "SKIP"
    ALLOW = "ALLOW"
    QUEUE_ONE = "QUEUE_ONE"
    QUEUE_ALL = "QUEUE_ALL"
    CANCEL_PREVIOUS = "CANCEL_PREVIOUS"


class SkipReason(StrEnum):
    """Why an instant has a skip record instead of an execution."""

    OVERLAP = "OVERLAP"
    MISFIRE = "MISFIRE"
    CALENDAR = "CALENDAR"
    PAUSED = "PAUSED"
    DST_GAP = "DST_GAP"


class Trigger(StrEnum):
    """What brought an execution into being."""

    SCHEDULE = "SCHEDULE"
    MANUAL = "MANUAL"
    ENQUEUE = "ENQUEUE"
    BACKFILL = "BACKFILL"
    DAG = "DAG"
    AFTER = "AFTER"
    REPLAY = "REPLAY"
    RETRY = "RETRY"


class AfterMode(StrEnum):
    ALL = "ALL"
    ANY = "ANY"


class AfterOn(StrEnum):
    SUCCEEDED = "SUCCEEDED"
    FINISHED = "FINISHED"


class Backoff(StrEnum):
    FIXED = "FIXED"
    LINEAR = "LINEAR"
    EXPONENTIAL = "EXPONENTIAL"


class ErrorType(StrEnum):
    HTTP_ERROR = "HTTP_ERROR"
    TIMEOUT = "TIMEOUT"
    CONNECTION = "CONNECTION"
    TARGET_REFUSED = "TARGET_REFUSED"
    HANDLER_ERROR = "HANDLER_ERROR"
    EXIT_CODE = "EXIT_CODE"
    INVALID_PAYLOAD = "INVALID_PAYLOAD"
    MISSING_SECRET = "MISSING_SECRET"  # noqa: S105  the name of an error, not a secret
    WORKER_LOST = "WORKER_LOST"
    EXPIRED = "EXPIRED"
    EXPRESSION_ERROR = "EXPRESSION_ERROR"
    RESULT_TOO_LARGE = "RESULT_TOO_LARGE"
    CANCELLED = "CANCELLED"


class TargetType(StrEnum):
    """What runs: a call to a URL, a function by its name, a program."""

    HTTP = "HTTP"
    HANDLER = "HANDLER"
    COMMAND = "COMMAND"


class CalendarRule(StrEnum):
    """What happens to an instant on an excluded day."""

    SKIP = "SKIP"
    NEXT_BUSINESS_DAY = "NEXT_BUSINESS_DAY"
    PREVIOUS_BUSINESS_DAY = "PREVIOUS_BUSINESS_DAY"


@dataclass(frozen=True, slots=True)
class After:
    """Fire when other jobs complete."""

    jobs: tuple[JobId, ...]
    mode: AfterMode = AfterMode.ALL
    on: AfterOn = AfterOn.SUCCEEDED


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a job fires. `type` says which of the fields below it must have."""

    type: ScheduleType
    cron_expression: str | None = None
    timezone: str = "UTC"
    interval_seconds: float | None = None
    run_at: datetime | None = None
    delay_seconds: float | None = None
    after: After | None = None
    start_at: datetime | None = None
    end_at: datetime | None = None
    max_runs: int | None = None
    jitter_seconds: float = 0
    calendar: str | None = None
    dst_gap: DstGap = DstGap.RUN_AFTER_GAP
    dst_overlap: DstOverlap = DstOverlap.FIRST
    misfire_policy: MisfirePolicy = MisfirePolicy.FIRE_ONCE
    misfire_max_runs: int = 100
    misfire_grace_seconds: float | None = None
    overlap_policy: OverlapPolicy = OverlapPolicy.SKIP


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    max_attempts: int = 4
    backoff: Backoff = Backoff.EXPONENTIAL
    initial_delay_seconds: float = 1
    multiplier: float = 2
    max_delay_seconds: float = 60
    jitter: float = 0.25
    max_crashes: int = 3
    poison_window_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class HttpTarget:
    url: str
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HandlerTarget:
    name: str


@dataclass(frozen=True, slots=True)
class CommandTarget:
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)


Target = HttpTarget | HandlerTarget | CommandTarget


@dataclass(frozen=True, slots=True)
class ConcurrencyLimit:
    """At most `limit` executions at once that share `key`: a literal, or `${payload.x}`."""

    key: str | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class RateLimit:
    count: int | None = None
    period_seconds: float | None = None


class ManagedBy(StrEnum):
    """Where a job's definition is kept, and so where it is to be changed."""

    API = "api"
    CODE = "code"  # declared beside its handler, brought by a worker
    APPLY = "apply"  # a file, brought by the command line


@dataclass(frozen=True, slots=True)
class DeadLetterPolicy:
    """What becomes of a job's dead letters by themselves: nothing, or another try."""

    auto_replay_after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """A definition: what to run, when, and how much trouble to take over it."""

    job_id: JobId
    tenant_id: TenantId
    name: str
    schedule: Schedule
    target: Target
    description: str = ""
    created_by: str = ""
    managed_by: ManagedBy = ManagedBy.API
    status: JobState = JobState.ACTIVE
    version: int = 1
    schedule_version: int = 1
    payload: Json = None
    retry_policy: RetryPolicy = RetryPolicy()
    timeout_seconds: float = 300
    cancel_grace_seconds: float = 30
    start_deadline_seconds: float | None = None
    priority: int = 5
    queue: str = "default"
    requires: frozenset[str] = frozenset()
    region: str | None = None
    concurrency: ConcurrencyLimit = ConcurrencyLimit()
    rate_limit: RateLimit = RateLimit()
    dead_letter: DeadLetterPolicy = DeadLetterPolicy()
    callback_url: str | None = None
    tags: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Execution:
    """One occurrence of a job that is not finished: a row of the live table."""

    execution_id: ExecutionId
    tenant_id: TenantId
    job_id: JobId
    job_version: int
    status: ExecutionState
    trigger: Trigger
    scheduled_time: datetime
    available_at: datetime
    priority: int = 5
    queue: str = "default"
    attempt_number: int = 0
    crash_count: int = 0
    fence: int = 0
    worker_id: WorkerId | None = None
    cancel_requested_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """What one attempt died of, as the retry rules and the user see it."""

    type: ErrorType
    message: str = ""
    http_status: int | None = None
    detail: str | None = None
    retry_after_seconds: float | None = None
    do_not_retry: bool = False


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try, as history keeps it."""

    execution_id: ExecutionId
    attempt_number: int
    fence: int
    status: ExecutionState
    started_at: datetime
    finished_at: datetime
    worker_id: WorkerId | None = None
    failure: Failure | None = None
