"""What happens when a job fires while an earlier scheduled execution of it is not terminal.

Only scheduled and AFTER fires ask. An execution in backoff still counts as running: its job is not
done. `running` are those that may run or do; `waiting` are those this policy holds back.
"""

from enum import StrEnum

from foliot.core.model import OverlapPolicy


class OverlapDecision(StrEnum):
    START = "START"
    HOLD = "HOLD"  # WAITING until the earlier ones are terminal
    SKIP = "SKIP"  # a skip record, reason OVERLAP
    CANCEL_PREVIOUS = "CANCEL_PREVIOUS"  # ask the earlier ones to stop; hold this one until then


def decide(policy: OverlapPolicy, *, running: int, waiting: int) -> OverlapDecision:
    """What becomes of one fire."""
    if policy is OverlapPolicy.ALLOW or running + waiting == 0:
        return OverlapDecision.START
    match policy:
        case OverlapPolicy.SKIP:
            return OverlapDecision.SKIP
        case OverlapPolicy.QUEUE_ONE:
            return OverlapDecision.SKIP if waiting else OverlapDecision.HOLD
        case OverlapPolicy.QUEUE_ALL:
            return OverlapDecision.HOLD
        case OverlapPolicy.CANCEL_PREVIOUS:
            return OverlapDecision.CANCEL_PREVIOUS


def decide_batch(
    policy: OverlapPolicy, *, running: int, waiting: int, fires: int
) -> tuple[OverlapDecision, ...]:
    """The same for several instants fired at once, oldest first: each sees the ones before it.

    Where a newer instant replaces the older, only the newest of the batch survives: the others
    would be cancelled before they could start.
    """
    if policy is OverlapPolicy.CANCEL_PREVIOUS:
        newest = (decide(policy, running=running, waiting=waiting),) if fires else ()
        return (OverlapDecision.SKIP,) * (fires - 1) + newest
    decisions = []
    for _ in range(fires):
        decision = decide(policy, running=running, waiting=waiting)
        decisions.append(decision)
        running += decision is OverlapDecision.START
        waiting += decision is OverlapDecision.HOLD
    return tuple(decisions)
