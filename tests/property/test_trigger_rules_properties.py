"""A rule speaks as soon as every future agrees, and not before: the order of ends is no matter."""

from itertools import combinations_with_replacement

from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.core.dag.trigger_rules import ParentTally, TriggerRule, Verdict, judge
from foliot.core.states import ExecutionState

OUTCOMES = {
    "succeeded": ExecutionState.SUCCEEDED,
    "failed": ExecutionState.FAILED,
    "skipped": ExecutionState.SKIPPED,
    "cancelled": ExecutionState.CANCELLED,
}


def runs_in_the_end(rule: TriggerRule, kinds: set[str]) -> bool:
    """With every parent ended, and at least one there."""
    return {
        TriggerRule.ALL_SUCCESS: kinds == {"succeeded"},
        TriggerRule.ALL_DONE: True,
        TriggerRule.ALL_FAILED: kinds == {"failed"},
        TriggerRule.ONE_SUCCESS: "succeeded" in kinds,
        TriggerRule.ONE_FAILED: "failed" in kinds,
        TriggerRule.NONE_FAILED: kinds <= {"succeeded", "skipped"},
        TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS: "succeeded" in kinds
        and kinds <= {"succeeded", "skipped"},
        TriggerRule.ALWAYS: True,
    }[rule]


def in_the_end(rule: TriggerRule, kinds: set[str]) -> Verdict:
    if runs_in_the_end(rule, kinds):
        return Verdict.RUN
    if rule in {TriggerRule.ALL_FAILED, TriggerRule.ONE_FAILED}:
        return Verdict.SKIP
    if "failed" in kinds:
        return Verdict.FAIL_UPSTREAM
    return Verdict.CANCEL if "cancelled" in kinds else Verdict.SKIP


@given(
    rule=st.sampled_from(TriggerRule),
    ended=st.lists(st.sampled_from(sorted(OUTCOMES)), max_size=5),
    pending=st.integers(0, 4),
)
@settings(deadline=None, max_examples=1500)
def test_a_rule_decides_when_all_futures_agree(
    rule: TriggerRule, ended: list[str], pending: int
) -> None:
    tally = ParentTally(pending_parents=len(ended) + pending)
    for kind in ended:
        tally = tally.count(OUTCOMES[kind])
    futures = combinations_with_replacement(sorted(OUTCOMES), pending)
    verdicts = {in_the_end(rule, {*ended, *future}) for future in futures if ended or future}
    waits_by_definition = rule is TriggerRule.ALL_DONE and pending > 0
    agreed = verdicts.pop() if len(verdicts) == 1 and not waits_by_definition else Verdict.WAIT
    assert judge(rule, tally) is (agreed if ended or pending else Verdict.RUN)
