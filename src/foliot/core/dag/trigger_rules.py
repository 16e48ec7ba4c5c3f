"""When does a task run, given how its parents ended?

Counters decide, never a scan: each parent that ends is counted once, and the rule reads the counts.
A verdict other than WAIT is final and does not depend on the order in which the parents end: a rule
decides early only where no later parent could change its mind.

    rule                         runs when                           otherwise
    ALL_SUCCESS                  every parent succeeded              unmet
    ALL_DONE                     every parent is finished            -
    ALL_FAILED                   every parent failed                 SKIP, at the first that did not
    ONE_SUCCESS                  one succeeded, at once              unmet
    ONE_FAILED                   one failed, at once                 SKIP
    NONE_FAILED                  all finished, none failed           unmet
    NONE_FAILED_MIN_ONE_SUCCESS  as above, and one succeeded         unmet
    ALWAYS                       at once, whatever the parents do    -

*Failed* is FAILED, TIMED_OUT or UPSTREAM_FAILED. *Unmet* takes the worst of the parents:
FAIL_UPSTREAM if one failed, else CANCEL if one was cancelled, else SKIP. A cancelled parent has not
failed: it sets off no alert, yet what needs it cannot run. A task without parents runs at once.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from foliot.core.states import ExecutionState


class TriggerRule(StrEnum):
    ALL_SUCCESS = "ALL_SUCCESS"
    ALL_DONE = "ALL_DONE"
    ALL_FAILED = "ALL_FAILED"
    ONE_SUCCESS = "ONE_SUCCESS"
    ONE_FAILED = "ONE_FAILED"
    NONE_FAILED = "NONE_FAILED"
    NONE_FAILED_MIN_ONE_SUCCESS = "NONE_FAILED_MIN_ONE_SUCCESS"
    ALWAYS = "ALWAYS"


# The rules of clean-up, fallback and alert tasks: a failure upstream is what they are there for.
TOLERANT: Final = frozenset(
    {TriggerRule.ALL_DONE, TriggerRule.ALL_FAILED, TriggerRule.ONE_FAILED, TriggerRule.ALWAYS}
)

# The rules that may start a task while a parent still runs.
HASTY: Final = frozenset({TriggerRule.ONE_SUCCESS, TriggerRule.ONE_FAILED, TriggerRule.ALWAYS})

FAILURES: Final = frozenset(
    {ExecutionState.FAILED, ExecutionState.TIMED_OUT, ExecutionState.UPSTREAM_FAILED}
)


class Verdict(StrEnum):
    WAIT = "WAIT"
    RUN = "RUN"
    SKIP = "SKIP"
    FAIL_UPSTREAM = "FAIL_UPSTREAM"
    CANCEL = "CANCEL"


@dataclass(frozen=True, slots=True)
class ParentTally:
    """How many parents are still to end, and how the others ended."""

    pending_parents: int = 0
    succeeded: int = 0
    failed: int = 0
    skipped: int = 0
    cancelled: int = 0

    def count(self, outcome: ExecutionState) -> "ParentTally":
        """One pending parent has ended in `outcome`, a terminal state."""
        left = self.pending_parents - 1
        if outcome is ExecutionState.SUCCEEDED:
            return replace(self, pending_parents=left, succeeded=self.succeeded + 1)
        if outcome in FAILURES:
            return replace(self, pending_parents=left, failed=self.failed + 1)
        if outcome is ExecutionState.SKIPPED:
            return replace(self, pending_parents=left, skipped=self.skipped + 1)
        return replace(self, pending_parents=left, cancelled=self.cancelled + 1)


_NO_PARENTS: Final = ParentTally()


def judge(rule: TriggerRule, parents: ParentTally) -> Verdict:
    """What `rule` makes of these parents."""
    if parents == _NO_PARENTS or rule is TriggerRule.ALWAYS:
        return Verdict.RUN
    match rule:
        case TriggerRule.ALL_DONE:
            return Verdict.WAIT if parents.pending_parents else Verdict.RUN
        case TriggerRule.ALL_FAILED:
            return _judge_all_failed(parents)
        case TriggerRule.ONE_FAILED:
            if parents.failed:
                return Verdict.RUN
            return Verdict.WAIT if parents.pending_parents else Verdict.SKIP
        case TriggerRule.ONE_SUCCESS:
            if parents.succeeded:
                return Verdict.RUN
            return Verdict.WAIT if parents.pending_parents else _unmet(parents)
        case _:
            return _judge_needs_success(rule, parents)


def _judge_all_failed(parents: ParentTally) -> Verdict:
    if parents.succeeded or parents.skipped or parents.cancelled:
        return Verdict.SKIP
    return Verdict.WAIT if parents.pending_parents else Verdict.RUN


def _judge_needs_success(rule: TriggerRule, parents: ParentTally) -> Verdict:
    """The rules that one failure settles: nothing that comes later is worse."""
    if parents.failed:
        return Verdict.FAIL_UPSTREAM
    if parents.pending_parents:
        return Verdict.WAIT
    if parents.cancelled:
        return Verdict.CANCEL
    if rule is TriggerRule.NONE_FAILED:
        met = True
    elif rule is TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS:
        met = parents.succeeded > 0
    else:
        met = parents.skipped == 0
    return Verdict.RUN if met else Verdict.SKIP


def _unmet(parents: ParentTally) -> Verdict:
    if parents.failed:
        return Verdict.FAIL_UPSTREAM
    return Verdict.CANCEL if parents.cancelled else Verdict.SKIP
