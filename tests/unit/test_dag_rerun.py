"""Does a retry do again what is needed, and only that?"""

import pytest

from foliot.core.dag.graph import Graph
from foliot.core.dag.rerun import retry_from
from foliot.core.dag.run import FailurePolicy, Run, apply, begin, finish_task, prepare
from foliot.core.dag.tasks import Task
from foliot.core.dag.trigger_rules import TriggerRule
from foliot.core.errors import IllegalTransition, InvalidInput
from foliot.core.model import HandlerTarget
from foliot.core.states import DagRunState, ExecutionState

SUCCEEDED, FAILED = ExecutionState.SUCCEEDED, ExecutionState.FAILED


def step(name: str, *dependencies: str, rule: TriggerRule = TriggerRule.ALL_SUCCESS) -> Task:
    target = HandlerTarget("work")
    return Task(name, target=target, dependencies=dependencies, trigger_rule=rule)


GRAPH = Graph.build(
    [
        step("extract"),
        step("left", "extract"),
        step("right", "extract"),
        step("join", "left", "right"),
        step("tidy", "join", rule=TriggerRule.ALL_DONE),
        step("aside"),
    ]
)


def finished(ends: dict[str, ExecutionState], policy: FailurePolicy) -> Run:
    """Run the graph: named tasks end as said, the others succeed."""
    run = prepare(GRAPH, policy)
    apply(run, begin(GRAPH, run))
    while run.progress.unfinished:
        live = [n for n, t in run.tasks.items() if t.state is ExecutionState.QUEUED]
        apply(run, finish_task(GRAPH, run, live[0], ends.get(live[0], SUCCEEDED)))
    return run


def test_what_failed_and_all_downstream_runs_again() -> None:
    rerun = retry_from(GRAPH, finished({"left": FAILED}, FailurePolicy.CONTINUE))
    assert rerun.again == ("left", "join", "tidy")
    assert rerun.kept == {"extract": SUCCEEDED, "right": SUCCEEDED, "aside": SUCCEEDED}


def test_what_a_stopped_run_cancelled_runs_again_too() -> None:
    rerun = retry_from(GRAPH, finished({"left": FAILED}, FailurePolicy.FAIL_FAST))
    assert rerun.again == ("aside", "left", "right", "join", "tidy")


def test_the_retried_run_ends_well_when_its_tasks_do() -> None:
    rerun = retry_from(GRAPH, finished({"left": FAILED}, FailurePolicy.CONTINUE))
    run = prepare(GRAPH, FailurePolicy.CONTINUE, rerun.kept)
    started = begin(GRAPH, run)
    assert started.released == ("left",)
    apply(run, started)
    for name in rerun.again:
        apply(run, finish_task(GRAPH, run, name, SUCCEEDED))
    assert run.progress.state is DagRunState.SUCCEEDED


def test_a_successful_task_can_be_named_to_start_from() -> None:
    rerun = retry_from(GRAPH, finished({}, FailurePolicy.FAIL_FAST), from_="right")
    assert rerun.again == ("right", "join", "tidy")


def test_a_run_without_failures_has_nothing_to_retry() -> None:
    assert retry_from(GRAPH, finished({}, FailurePolicy.FAIL_FAST)).again == ()


def test_a_start_whose_parents_forbid_it_is_refused_with_the_better_one() -> None:
    run = finished({"left": FAILED}, FailurePolicy.CONTINUE)
    with pytest.raises(InvalidInput, match="retry from 'left'") as refused:
        retry_from(GRAPH, run, from_="join")
    assert refused.value.field == "from"


def test_a_clean_up_task_may_be_retried_although_its_parent_failed() -> None:
    run = finished({"left": FAILED}, FailurePolicy.CONTINUE)
    assert retry_from(GRAPH, run, from_="tidy").again == ("tidy",)


def test_an_unknown_start_is_refused() -> None:
    with pytest.raises(InvalidInput, match="not a task"):
        retry_from(GRAPH, finished({}, FailurePolicy.CONTINUE), from_="nowhere")


def test_a_run_that_is_not_over_cannot_be_retried() -> None:
    run = prepare(GRAPH, FailurePolicy.CONTINUE)
    apply(run, begin(GRAPH, run))
    with pytest.raises(IllegalTransition):
        retry_from(GRAPH, run)
