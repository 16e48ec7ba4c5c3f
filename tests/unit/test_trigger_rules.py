"""Does each rule say what the table in its module says?"""

import pytest

from foliot.core.dag.trigger_rules import ParentTally, TriggerRule, Verdict, judge
from foliot.core.states import ExecutionState

WAIT, RUN, SKIP = Verdict.WAIT, Verdict.RUN, Verdict.SKIP
LOST, CANCEL = Verdict.FAIL_UPSTREAM, Verdict.CANCEL
LETTERS = {
    "s": ExecutionState.SUCCEEDED,
    "f": ExecutionState.FAILED,
    "k": ExecutionState.SKIPPED,
    "c": ExecutionState.CANCELLED,
}


def tally(parents: str) -> ParentTally:
    """`s`ucceeded, `f`ailed, s`k`ipped, `c`ancelled, `.` not ended."""
    counted = ParentTally(pending_parents=len(parents))
    for letter in parents.replace(".", ""):
        counted = counted.count(LETTERS[letter])
    return counted


@pytest.mark.parametrize(
    ("rule", "verdicts"),
    [
        (
            TriggerRule.ALL_SUCCESS,
            {"ss": RUN, "s.": WAIT, "f.": LOST, "sk": SKIP, "k.": WAIT, "kf": LOST, "sc": CANCEL},
        ),
        (TriggerRule.ALL_DONE, {"sf": RUN, "kc": RUN, "ff": RUN, "s.": WAIT, "f.": WAIT}),
        (
            TriggerRule.ALL_FAILED,
            {"ff": RUN, "f.": WAIT, "s.": SKIP, "fs": SKIP, "fk": SKIP, "c.": SKIP},
        ),
        (
            TriggerRule.ONE_SUCCESS,
            {"s.": RUN, "fs": RUN, "f.": WAIT, "ff": LOST, "fk": LOST, "kk": SKIP, "kc": CANCEL},
        ),
        (
            TriggerRule.ONE_FAILED,
            {"f.": RUN, "sf": RUN, "s.": WAIT, "ss": SKIP, "kk": SKIP, "c.": WAIT, "sc": SKIP},
        ),
        (
            TriggerRule.NONE_FAILED,
            {"ss": RUN, "sk": RUN, "kk": RUN, "s.": WAIT, "f.": LOST, "sc": CANCEL},
        ),
        (
            TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS,
            {"ss": RUN, "sk": RUN, "kk": SKIP, "s.": WAIT, "f.": LOST, "sc": CANCEL, "kc": CANCEL},
        ),
        (TriggerRule.ALWAYS, {"..": RUN, "ff": RUN, "s.": RUN}),
    ],
)
def test_each_rule_reads_its_parents_as_documented(
    rule: TriggerRule, verdicts: dict[str, Verdict]
) -> None:
    assert {parents: judge(rule, tally(parents)) for parents in verdicts} == verdicts


@pytest.mark.parametrize("rule", TriggerRule)
def test_a_task_without_parents_runs_whatever_its_rule(rule: TriggerRule) -> None:
    assert judge(rule, ParentTally()) is RUN


@pytest.mark.parametrize(
    "state", [ExecutionState.FAILED, ExecutionState.TIMED_OUT, ExecutionState.UPSTREAM_FAILED]
)
def test_a_timeout_and_a_lost_task_count_as_failed(state: ExecutionState) -> None:
    assert ParentTally(pending_parents=1).count(state) == ParentTally(failed=1)
