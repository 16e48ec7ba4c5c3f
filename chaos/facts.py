"""What a run left behind, as the checker reads it: the database's own tables, a log of every change
that triggers outside the product wrote, the sink's records, and what clients and nemesis noted.

Times named `at` are the database's clock; `monotonic` is the machine's own clock that never jumps
and that all its processes share. Nothing here asks anybody anything.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

Row = Mapping[str, Any]  # a table's row by its column names; JSON is parsed
# Kinds of faults: the database could not be written to for longer than a worker may be silent, and
# it stood still.
LONG_OUTAGE: Final = "long outage"
STALL: Final = "stall database"
STALLED: Final = "stalled"  # how a long outage came about: standing still


@dataclass(frozen=True, slots=True)
class Effect:
    """A record of the sink, on disk before the handler was answered."""

    number: int  # the sink's own order
    monotonic: float
    execution_id: UUID
    fence: int
    attempt_number: int
    idempotency_key: str
    what: str  # "begun", "done", or what else the handler says of itself
    process: int  # the pid that ran it
    job: str  # the job's name


@dataclass(frozen=True, slots=True)
class Exchange:
    """A client's request and what became of it: `status` is None if no answer came, and then it
    was done once or not at all."""

    action: str  # "enqueue", "cancel", "pause", "resume", "edit", "delete", "create", "replay", …
    sent: float  # monotonic
    answered: float | None
    status: int | None
    key: str | None  # the idempotency key that went with it
    body: Row
    answer: Row | None
    job_id: UUID | None = None
    execution_id: UUID | None = None

    @property
    def is_done(self) -> bool:
        """It was answered, and not refused."""
        return self.status is not None and 200 <= self.status < 300


@dataclass(frozen=True, slots=True)
class Fault:
    """One deed of the nemesis, from `began` to `healed` (the same for a kill)."""

    kind: str  # "kill scheduler", "stop worker", "restart database", "black hole", …
    victim: str  # the node's name; "" for the database
    began: float
    healed: float
    began_at: datetime
    point: str | None = None  # where it was struck, e.g. "after fire"
    detail: Row = field(default_factory=dict)  # of a killed scheduler: {"id": …, "shards": [...]}

    @property
    def is_stall(self) -> bool:
        """The database stood still for as long, and lost nothing."""
        return self.kind == STALL or self.detail.get("how") == STALLED


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a row of `executions`, `shard_leases` or `queues`, written by a trigger in its
    transaction.

    `old` and `new` are the columns that matter (None: there was or is no row). `committed_at` is
    the transaction's commit timestamp; `number` the order of writing within the log.
    """

    number: int
    transaction: int
    committed_at: datetime
    old: Row | None
    new: Row | None


@dataclass(frozen=True, slots=True)
class Sample:
    """The health of the whole at a moment."""

    monotonic: float
    at: datetime
    nodes: Mapping[str, Row]  # by name: rss_bytes, descriptors, pid
    connections: int
    idle_in_transaction_seconds: float  # the oldest
    owned_shards: int
    live_rows: int


@dataclass(frozen=True, slots=True)
class Facts:
    """All of it. `calm_at`: from here on no fault struck; `read_at`: when the tables were read."""

    began_at: datetime
    calm_at: datetime
    read_at: datetime
    calm: float  # the same moment on the monotonic clock
    jobs: tuple[Row, ...]
    job_versions: tuple[Row, ...]
    executions: tuple[Row, ...]
    attempts: tuple[Row, ...]
    skips: tuple[Row, ...]
    dead_letters: tuple[Row, ...]
    workers: tuple[Row, ...]
    limits: tuple[Row, ...]
    rate_starts: tuple[Row, ...]
    shard_leases: tuple[Row, ...]
    execution_changes: tuple[Change, ...]
    lease_changes: tuple[Change, ...]
    effects: tuple[Effect, ...]
    exchanges: tuple[Exchange, ...]
    faults: tuple[Fault, ...]
    samples: tuple[Sample, ...]
    outcries: tuple[Row, ...]  # lines of the nodes' output that no node should print: node, line
    queues: tuple[Row, ...] = ()
    queue_changes: tuple[Change, ...] = ()
    reports: tuple[Row, ...] = ()  # progress and lines as they were written, see change_log.sql
    seed: int | None = None
