"""May it start now, and if not, why? Concurrency and rate limits, counted from rows.

A row starts if every limit it is under has room; a limit without room holds only the rows under
it, never those behind them. What was counted comes in as facts, so nothing drifts.

A rate limit is a window: at most `count` starts in any `period_seconds`, hence at most
count * W / period + count in any span W. A burst is the same rule with a longer window (`burst`).
The window needs only the start times on rows; a token bucket's level depends on all that ever
started, so it would need a counter of its own that every crash could bend.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Final, NamedTuple
from uuid import UUID

from foliot.core.errors import InvalidInput
from foliot.core.ids import ExecutionId, JobId, TenantId
from foliot.core.model import Json, RateLimit

COUNT_MAX: Final = 1_000_000
PERIOD_SECONDS_MIN: Final = 0.001
PERIOD_SECONDS_MAX: Final = 366 * 86_400.0
MINUTE: Final = 60.0
# Of what a tenant may start within a minute, so many minutes' worth may start at once.
TENANT_BURST: Final = 2.0


class Scope(IntEnum):
    """What a limit is about, in the order in which blockers are named: widest first."""

    QUEUE = 1
    TENANT = 2
    JOB = 3
    KEY = 4
    TENANT_RATE = 5
    JOB_RATE = 6


# What is counted on rows, the widest first.
_WIDTHS: Final = {
    Scope.TENANT: 1,
    Scope.TENANT_RATE: 1,
    Scope.JOB: 2,
    Scope.JOB_RATE: 2,
    Scope.KEY: 3,
}


class LimitKey(NamedTuple):
    """Under what the rows are counted. Keys are per tenant; queues are shared by all."""

    scope: Scope
    tenant_id: TenantId | None
    subject: str


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `at_most` running, or with a period, at most that many starts within it."""

    key: LimitKey
    label: str
    at_most: int
    period_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Use:
    """How much of a limit the rows have taken. `next_slot_at`: when a rate has room again."""

    used: int = 0
    next_slot_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A runnable row and every limit it is under."""

    execution_id: ExecutionId
    limits: tuple[Limit, ...]


@dataclass(frozen=True, slots=True)
class Blocker:
    """One limit without room: who, how full, and the way out."""

    limit: Limit
    used: int
    next_slot_at: datetime | None = None

    def __str__(self) -> str:
        limit = self.limit
        if limit.period_seconds is None:
            return f"{limit.label}: {self.used} of {limit.at_most} running"
        used = f"{limit.label}: {self.used} of {limit.at_most} per {limit.period_seconds:g} s used"
        return f"{used}, next slot at {_in_words(self.next_slot_at)}" if self.next_slot_at else used

    @property
    def way_out(self) -> str:
        match self.limit.key.scope:
            case Scope.QUEUE:
                return "wait for one to finish, or raise the limit of the queue"
            case Scope.TENANT:
                return "wait for one to finish, or raise the tenant's max concurrent"
            case Scope.JOB | Scope.KEY:
                return "wait for one to finish, or raise concurrency.limit of the job"
            case Scope.TENANT_RATE:
                return "wait for the next slot, or raise the tenant's executions per minute"
            case Scope.JOB_RATE:
                return "wait for the next slot, or raise rate_limit.count of the job"


@dataclass(frozen=True, slots=True)
class Held:
    execution_id: ExecutionId
    blockers: tuple[Blocker, ...]


@dataclass(frozen=True, slots=True)
class Admission:
    """Who starts and who is held, both in the order of the rows; without slots left, neither."""

    admitted: tuple[ExecutionId, ...]
    held: tuple[Held, ...]


def admit(
    candidates: Iterable[Candidate],
    uses: Mapping[LimitKey, Use],
    now: datetime,
    *,
    slots: int,
) -> Admission:
    """Take rows in the order given (that of rank) until `slots` are filled."""
    taken: dict[LimitKey, int] = {}
    admitted: list[ExecutionId] = []
    held: list[Held] = []
    unused = Use()
    for candidate in candidates:
        if len(admitted) >= slots:
            break
        full = [
            limit
            for limit in candidate.limits
            if uses.get(limit.key, unused).used + taken.get(limit.key, 0) >= limit.at_most
        ]
        if full:
            blockers = tuple(
                _blocker(limit, uses, taken, now) for limit in sorted(full, key=_scope)
            )
            held.append(Held(candidate.execution_id, blockers))
            continue
        admitted.append(candidate.execution_id)
        for limit in candidate.limits:
            taken[limit.key] = taken.get(limit.key, 0) + 1
    return Admission(tuple(admitted), tuple(held))


def room(limits: Iterable[Limit], uses: Mapping[LimitKey, Use]) -> int | None:
    """How many rows under exactly these limits may start now; None means no limit applies."""
    left = [max(0, limit.at_most - uses.get(limit.key, Use()).used) for limit in limits]
    return min(left, default=None)


def window_use(limit: RateLimit, starts: Sequence[datetime], now: datetime) -> Use:
    """What these start times, oldest first, have used of `limit` by `now`.

    A start leaves the window exactly one period later. If the limit was lowered and more are in
    the window than it allows, the next slot comes when enough of them have left.
    """
    if limit.count is None or limit.period_seconds is None:
        return Use()
    period = timedelta(seconds=limit.period_seconds)
    recent = [start for start in starts if start + period > now]
    if len(recent) < limit.count:
        return Use(len(recent), recent[0] + period if recent else None)
    return Use(len(recent), recent[len(recent) - limit.count] + period)


def burst(limit: RateLimit, factor: float) -> RateLimit:
    """The same rate, of which `factor` periods may be used at once.

    A hundred a minute with a burst of 2 is two hundred in any two minutes. The period follows the
    whole number of starts, so the rate itself stays what it was.
    """
    if limit.count is None or limit.period_seconds is None:
        return limit
    count = max(limit.count, int(limit.count * factor))
    return replace(limit, count=count, period_seconds=limit.period_seconds * count / limit.count)


def queue_limit(queue: str, at_most: int) -> Limit:
    return Limit(LimitKey(Scope.QUEUE, None, queue), f"queue {queue}", at_most)


def tenant_limit(tenant: TenantId, at_most: int) -> Limit:
    return Limit(LimitKey(Scope.TENANT, tenant, ""), "max concurrent of the tenant", at_most)


def job_limit(tenant: TenantId, job: JobId, name: str, at_most: int) -> Limit:
    return Limit(LimitKey(Scope.JOB, tenant, job.hex), f"concurrency of job {name}", at_most)


def key_limit(tenant: TenantId, key: str, at_most: int) -> Limit:
    return Limit(LimitKey(Scope.KEY, tenant, key), f"concurrency key {key}", at_most)


def key_text(key: LimitKey) -> str:
    """How rows name what they are counted under; its concurrency and its rate share one name."""
    match key.scope:
        case Scope.TENANT | Scope.TENANT_RATE:
            return f"tenant:{key.tenant_id}"
        case Scope.JOB | Scope.JOB_RATE:
            return f"job:{UUID(hex=key.subject)}"
        case Scope.KEY:
            return f"key:{key.tenant_id}:{key.subject}"
        case Scope.QUEUE:
            raise InvalidInput("rows are in one queue and need no key for it", field="queue")


def key_texts(limits: Iterable[Limit]) -> tuple[str, ...]:
    """The keys of a row under these limits, widest first: neighbours then share their beginning."""
    keys = sorted({limit.key for limit in limits}, key=lambda key: _WIDTHS[key.scope])
    return tuple(dict.fromkeys(map(key_text, keys)))


def tenant_rate(tenant: TenantId, rate: RateLimit) -> Limit | None:
    return _rate(LimitKey(Scope.TENANT_RATE, tenant, ""), "rate limit of the tenant", rate)


def job_rate(tenant: TenantId, job: JobId, name: str, rate: RateLimit) -> Limit | None:
    return _rate(LimitKey(Scope.JOB_RATE, tenant, job.hex), f"rate limit of job {name}", rate)


def limits_of_tenant(tenant: TenantId, quotas: Mapping[str, Json]) -> tuple[Limit, ...]:
    """What a tenant's quotas say about how many may run at once and start in a minute."""
    at_most = _quota(quotas, "max_concurrent")
    rate = RateLimit(_quota(quotas, "executions_per_minute"), MINUTE)
    limits = (
        None if at_most is None else tenant_limit(tenant, at_most),
        tenant_rate(tenant, burst(rate, TENANT_BURST)),
    )
    return tuple(limit for limit in limits if limit is not None)


def check_concurrency_limit(at_most: int | None, field: str = "concurrency.limit") -> None:
    if at_most is not None and not 1 <= at_most <= COUNT_MAX:
        raise InvalidInput(
            f"{at_most} executions at once are not possible",
            field=field,
            hint=f"use 1 to {COUNT_MAX}, or null for no limit; to stop it, pause it",
        )


def check_rate_limit(rate: RateLimit) -> None:
    if rate.count is None and rate.period_seconds is None:
        return
    if rate.count is None or rate.period_seconds is None:
        missing = "count" if rate.count is None else "period_seconds"
        raise InvalidInput(
            "a rate needs both a count and a period",
            field=f"rate_limit.{missing}",
            hint="100 a minute is count 100, period_seconds 60",
        )
    if not 1 <= rate.count <= COUNT_MAX:
        raise InvalidInput(
            f"{rate.count} starts are not a rate",
            field="rate_limit.count",
            hint=f"use 1 to {COUNT_MAX}; to stop a job, pause it",
        )
    if not PERIOD_SECONDS_MIN <= rate.period_seconds <= PERIOD_SECONDS_MAX:
        raise InvalidInput(
            f"{rate.period_seconds} s is not a period",
            field="rate_limit.period_seconds",
            hint=f"use {PERIOD_SECONDS_MIN:g} to {PERIOD_SECONDS_MAX:.0f} (a year)",
        )


def _quota(quotas: Mapping[str, Json], name: str) -> int | None:
    value = quotas.get(name)
    if value is None or (type(value) is int and 1 <= value <= COUNT_MAX):
        return value
    raise InvalidInput(
        f"{str(value)[:40]!r} is not a quota",
        field=f"quotas.{name}",
        hint=f"use 1 to {COUNT_MAX}, or null for none",
    )


def _rate(key: LimitKey, label: str, rate: RateLimit) -> Limit | None:
    if rate.count is None or rate.period_seconds is None:
        return None
    return Limit(key, label, rate.count, rate.period_seconds)


def _blocker(
    limit: Limit, uses: Mapping[LimitKey, Use], taken: Mapping[LimitKey, int], now: datetime
) -> Blocker:
    use = uses.get(limit.key, Use())
    used = use.used + taken.get(limit.key, 0)
    if limit.period_seconds is None:
        return Blocker(limit, used)
    return Blocker(limit, used, use.next_slot_at or now + timedelta(seconds=limit.period_seconds))


def _scope(limit: Limit) -> Scope:
    return limit.key.scope


def _in_words(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
