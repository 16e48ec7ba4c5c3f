"""One fire against what is still live, and a batch of fires against each other."""

import pytest

from foliot.core.model import OverlapPolicy
from foliot.core.schedule.overlap import OverlapDecision, decide, decide_batch

START, HOLD = OverlapDecision.START, OverlapDecision.HOLD
SKIP, CANCEL = OverlapDecision.SKIP, OverlapDecision.CANCEL_PREVIOUS


@pytest.mark.parametrize("policy", OverlapPolicy)
def test_a_job_with_nothing_live_starts(policy: OverlapPolicy) -> None:
    assert decide(policy, running=0, waiting=0) is START


@pytest.mark.parametrize(
    ("policy", "running", "waiting", "decision"),
    [
        (OverlapPolicy.SKIP, 1, 0, SKIP),
        (OverlapPolicy.SKIP, 0, 1, SKIP),
        (OverlapPolicy.ALLOW, 3, 0, START),
        (OverlapPolicy.QUEUE_ONE, 1, 0, HOLD),
        (OverlapPolicy.QUEUE_ONE, 1, 1, SKIP),
        (OverlapPolicy.QUEUE_ONE, 0, 1, SKIP),
        (OverlapPolicy.QUEUE_ALL, 1, 5, HOLD),
        (OverlapPolicy.QUEUE_ALL, 0, 1, HOLD),
        (OverlapPolicy.CANCEL_PREVIOUS, 1, 0, CANCEL),
        (OverlapPolicy.CANCEL_PREVIOUS, 0, 1, CANCEL),
    ],
)
def test_a_fire_meets_live_executions(
    policy: OverlapPolicy, running: int, waiting: int, decision: OverlapDecision
) -> None:
    assert decide(policy, running=running, waiting=waiting) is decision


@pytest.mark.parametrize(
    ("policy", "running", "decisions"),
    [
        (OverlapPolicy.SKIP, 0, (START, SKIP, SKIP)),
        (OverlapPolicy.SKIP, 1, (SKIP, SKIP, SKIP)),
        (OverlapPolicy.ALLOW, 0, (START, START, START)),
        (OverlapPolicy.QUEUE_ONE, 0, (START, HOLD, SKIP)),
        (OverlapPolicy.QUEUE_ONE, 1, (HOLD, SKIP, SKIP)),
        (OverlapPolicy.QUEUE_ALL, 0, (START, HOLD, HOLD)),
        (OverlapPolicy.CANCEL_PREVIOUS, 0, (SKIP, SKIP, START)),
        (OverlapPolicy.CANCEL_PREVIOUS, 1, (SKIP, SKIP, CANCEL)),
    ],
)
def test_each_fire_of_a_batch_sees_the_ones_before_it(
    policy: OverlapPolicy, running: int, decisions: tuple[OverlapDecision, ...]
) -> None:
    assert decide_batch(policy, running=running, waiting=0, fires=3) == decisions


@pytest.mark.parametrize("policy", OverlapPolicy)
def test_an_empty_batch_decides_nothing(policy: OverlapPolicy) -> None:
    assert decide_batch(policy, running=1, waiting=0, fires=0) == ()
