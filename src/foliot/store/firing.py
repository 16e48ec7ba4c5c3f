"""Firing: a batch of due jobs is advanced and their executions and skips are written, in one call.

Whether it is still this caller's turn and whether an instant overlaps is decided by the server, in
that transaction. A job that comes back with no answer was not as the caller saw it: somebody else
fired, edited or paused it, and nothing was done. After `CommitUnknown` a batch can be sent again.
A batch that comes too long after it was decided is a `TransactionConflict`: decide anew.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Final

import msgspec

from foliot.core.ids import ExecutionId, JobId, TenantId
from foliot.core.schedule.timeline import Skip
from foliot.store.columns import sparse, unless
from foliot.store.database import Database
from foliot.store.errors import StatementFailed, TransactionConflict
from foliot.store.session import Session
from foliot.store.statements import statement

_FIRE_DUE: Final = statement("jobs/fire_due")

# Enough for one call, and for what is settled in one go: a fire and a skip record for each of a
# thousand jobs. The job that gets there may bring a thousand more: 30 to 100 ms of work, and 0.4 s
# at worst, where two go back by 10,000 instants that a calendar moves.
ROWS_AT_ONCE: Final = 2000

# A lock that could not be had; and what a statement is refused for whatever its rows are: an
# unknown name, a missing right, an operator's or a timeout's cancellation.
_LOCK_TIMEOUT: Final = "55P03"
_NOT_OF_A_ROW: Final = ("42", "57")


@dataclass(frozen=True, slots=True)
class Fire:
    """One instant that is to have an execution."""

    execution_id: ExecutionId
    instant: datetime
    available_at: datetime


@dataclass(frozen=True, slots=True)
class JobFire:
    """All that is due of one job, up to the instant `settled`, and what comes after it. Where the
    job has a grace, the decision to fire holds only until the oldest fire has outlived it."""

    job_id: JobId
    tenant_id: TenantId
    queue: str
    expected: datetime
    schedule_version: int
    fires: tuple[Fire, ...]
    skips: tuple[Skip, ...]
    settled: datetime
    next_instant: datetime | None
    next_run_at: datetime | None
    runs_left: int | None = None
    replaces: bool = False
    holds_until: datetime | None = None

    @property
    def rows(self) -> int:
        return len(self.fires) + len(self.skips)


class Fired(msgspec.Struct, frozen=True):
    """What was written for one job."""

    job_id: JobId
    fired: int
    skipped: int


@dataclass(frozen=True, slots=True)
class FireReport:
    """`passed_over` were no longer as seen; each of `refused` was sent alone and still failed."""

    applied: tuple[Fired, ...]
    passed_over: tuple[JobId, ...]
    refused: tuple[tuple[JobId, StatementFailed], ...] = ()


async def fire_batch(
    database: Database,
    batch: Sequence[JobFire],
    *,
    take: bool = False,
    now: datetime | None = None,
    as_of: datetime | None = None,
) -> FireReport:
    """Fire each job that is still as seen. With `take`, wait for jobs that somebody has locked;
    with `as_of`, the time by which it was decided, only while that is not long ago.

    A job that the server refuses is found by halving and does not keep the others from firing.
    """
    ordered = sorted(batch, key=lambda one: one.job_id)
    if not ordered:
        return FireReport((), ())
    try:
        async with database.connection() as session:
            return await fire_in(session, ordered, take=take, now=now, as_of=as_of)
    except TransactionConflict as conflict:
        # Whoever holds one of the jobs is not done: the others need not wait for it.
        if not take or conflict.sqlstate != _LOCK_TIMEOUT:
            raise
        return await fire_batch(database, ordered, now=now, as_of=as_of)
    except StatementFailed as failure:
        if (failure.sqlstate or "").startswith(_NOT_OF_A_ROW):
            raise
        if len(ordered) == 1:
            return FireReport((), (), ((ordered[0].job_id, failure),))
    middle = len(ordered) // 2
    halves = [
        await fire_batch(database, half, take=take, now=now, as_of=as_of)
        for half in (ordered[:middle], ordered[middle:])
    ]
    return FireReport(
        tuple(chain.from_iterable(half.applied for half in halves)),
        tuple(chain.from_iterable(half.passed_over for half in halves)),
        tuple(chain.from_iterable(half.refused for half in halves)),
    )


async def fire_in(
    session: Session,
    ordered: Sequence[JobFire],
    *,
    take: bool,
    now: datetime | None,
    as_of: datetime | None = None,
    park: bool = False,
) -> FireReport:
    """One call, in the session's transaction if it has one; jobs in the order of their ids.

    Where the transaction goes on after it, `park`: a flow that is locked until the commit would
    keep all its other jobs waiting for this client. What may start is then left to the release.
    """
    columns = _columns(ordered, park=park)
    row = await session.fetch_row(_FIRE_DUE, *columns, take, _replaces(ordered), now, as_of)
    if row is None:
        raise TransactionConflict("it was decided too long ago", "40001", _FIRE_DUE.name)
    numbers, fired = row
    applied = {
        number: _fired(ordered[number - 1], count)
        for number, count in zip(numbers or (), fired or (), strict=True)
    }
    return FireReport(
        tuple(applied[number] for number in sorted(applied)),
        tuple(one.job_id for number, one in enumerate(ordered, 1) if number not in applied),
    )


def _replaces(batch: Sequence[JobFire]) -> bool:
    return any(one.replaces for one in batch)


def _fired(one: JobFire, fired: int) -> Fired:
    """Whatever did not fire has been recorded as a skip."""
    return Fired(one.job_id, fired, sum(skip.count for skip in one.skips) + len(one.fires) - fired)


def _columns(batch: Sequence[JobFire], *, park: bool) -> Iterator[Sequence[object] | None]:
    """The batch as the arrays of the call; fires and skips name their job by its place from 1."""
    flows = list({(one.queue, one.tenant_id): None for one in batch})
    usual_queue = None if park else flows[0][0]
    yield None if park else [queue for queue, _ in flows]
    yield [tenant_id for _, tenant_id in flows]
    yield [one.job_id for one in batch]
    yield sparse([unless(one.queue, usual_queue) for one in batch])
    yield [one.expected for one in batch]
    yield [one.schedule_version for one in batch]
    yield sparse([one.next_instant for one in batch])
    yield sparse([unless(one.next_run_at, one.next_instant) for one in batch])
    yield sparse([unless(one.settled, one.expected) for one in batch])
    yield sparse([one.runs_left for one in batch])
    yield sparse([unless(len(one.fires), 1) for one in batch])
    yield sparse([one.holds_until for one in batch])
    yield from _fire_columns(batch)
    skips = [(number, skip) for number, one in enumerate(batch, 1) for skip in one.skips]
    yield [number for number, _ in skips]
    yield [skip.from_ for _, skip in skips]
    yield [skip.to for _, skip in skips]
    yield [skip.count for _, skip in skips]
    yield [skip.reason.value for _, skip in skips]


def _fire_columns(batch: Sequence[JobFire]) -> Iterator[Sequence[object] | None]:
    """Usually each job has one fire, for the instant that was expected."""
    fires = [
        (number, place, one, fire)
        for number, one in enumerate(batch, 1)
        for place, fire in enumerate(one.fires, 1)
    ]
    yield sparse([unless(number, row) for row, (number, _, _, _) in enumerate(fires, 1)])
    yield sparse([unless(place, 1) for _, place, _, _ in fires])
    yield [fire.execution_id for _, _, _, fire in fires]
    yield sparse([unless(fire.instant, one.expected) for _, _, one, fire in fires])
    yield sparse([unless(fire.available_at, fire.instant) for _, _, _, fire in fires])
