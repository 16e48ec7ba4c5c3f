"""One task, many instances: a task that runs once per member of a parent's list.

Its children see a single parent: it ends when its last instance does, FAILED if one failed, and its
result is the list of the instances' results in order. An empty list succeeds with an empty result:
nothing to do is done. Instances start in the order of the list, so two counters say which have.
"""

from dataclasses import dataclass, replace
from typing import Final

from foliot.core.dag.conditions import Scope, look_up
from foliot.core.dag.expressions import parse_path
from foliot.core.dag.trigger_rules import FAILURES
from foliot.core.errors import ExpressionFailed
from foliot.core.model import Json
from foliot.core.states import TERMINAL, ExecutionState

INSTANCES_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class FanOut:
    """Run once per member of the list at `over`, at most `max_concurrency` at a time."""

    over: str
    max_concurrency: int | None = None


@dataclass(frozen=True, slots=True)
class Instance:
    """`${item}` and `${index}` of one instance, to be used in its payload."""

    index: int
    item: Json


@dataclass(frozen=True, slots=True)
class FanOutRun:
    """Instances below `started` have been released; the others have not."""

    total: int
    concurrency: int
    started: int = 0
    succeeded: int = 0
    failed: int = 0
    skipped: int = 0
    cancelled: int = 0

    @property
    def unfinished(self) -> int:
        return self.total - self.succeeded - self.failed - self.skipped - self.cancelled


@dataclass(frozen=True, slots=True)
class FanOutDecision:
    """Indexes to release, indexes that never will be, and the task's own end, if it has come.

    `cancel_started` asks to cancel the instances that were released and are not finished.
    """

    run: FanOutRun
    release: range = range(0)
    cancelled: range = range(0)
    cancel_started: bool = False
    outcome: ExecutionState | None = None


def expand(fan_out: FanOut, scope: Scope) -> tuple[Instance, ...]:
    """The instances, in the order of the list."""
    value = look_up(parse_path(fan_out.over), scope)
    if not isinstance(value, (list, tuple)):
        raise ExpressionFailed("a fan-out needs a list", fan_out.over)
    if len(value) > INSTANCES_MAX:
        reason = f"the list has {len(value):,} members, a fan-out takes {INSTANCES_MAX:,}"
        raise ExpressionFailed(reason, fan_out.over)
    return tuple(Instance(index, item) for index, item in enumerate(value))


def begin_fan_out(total: int, max_concurrency: int | None) -> FanOutDecision:
    """Which instances start at once."""
    concurrency = total if max_concurrency is None else max_concurrency
    return _release(FanOutRun(total=total, concurrency=concurrency))


def finish_instance(
    run: FanOutRun, outcome: ExecutionState, *, stop_on_failure: bool
) -> FanOutDecision:
    """One released instance has ended; `stop_on_failure` lets no other start after a failure."""
    if outcome not in TERMINAL or run.unfinished == 0:
        raise ValueError(f"{outcome} does not end an instance of {run}")
    counted = _count(run, outcome)
    if outcome in FAILURES and stop_on_failure:
        never = range(counted.started, counted.total)
        stopped = replace(counted, started=counted.total, cancelled=counted.cancelled + len(never))
        return FanOutDecision(
            stopped, cancelled=never, cancel_started=stopped.unfinished > 0, outcome=_join(stopped)
        )
    return _release(counted)


def _count(run: FanOutRun, outcome: ExecutionState) -> FanOutRun:
    if outcome in FAILURES:
        return replace(run, failed=run.failed + 1)
    if outcome is ExecutionState.SUCCEEDED:
        return replace(run, succeeded=run.succeeded + 1)
    if outcome is ExecutionState.SKIPPED:
        return replace(run, skipped=run.skipped + 1)
    return replace(run, cancelled=run.cancelled + 1)


def _release(run: FanOutRun) -> FanOutDecision:
    in_flight = run.started - (run.total - run.unfinished)
    until = min(run.total, run.started + run.concurrency - in_flight)
    released = range(run.started, until)
    after = replace(run, started=until)
    return FanOutDecision(after, release=released, outcome=_join(after))


def _join(run: FanOutRun) -> ExecutionState | None:
    """How the task ends as its children count it: the worst of its instances decides."""
    if run.unfinished:
        return None
    if run.failed:
        return ExecutionState.FAILED
    if run.cancelled:
        return ExecutionState.CANCELLED
    if run.skipped and not run.succeeded:
        return ExecutionState.SKIPPED
    return ExecutionState.SUCCEEDED
