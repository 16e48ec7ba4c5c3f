"""Does a run release, lose, skip, cancel and end its tasks as its rules and policy say?"""

import time
from dataclasses import replace

import pytest

from foliot.core.dag.fan_out import FanOut
from foliot.core.dag.graph import Graph
from foliot.core.dag.run import (
    Decision,
    FailurePolicy,
    Run,
    apply,
    begin,
    cancel,
    effective_retry_policy,
    finish_task,
    move_task,
    prepare,
)
from foliot.core.dag.tasks import Task, WaitFor
from foliot.core.dag.trigger_rules import TriggerRule
from foliot.core.errors import IllegalTransition
from foliot.core.model import HandlerTarget, RetryPolicy
from foliot.core.states import DagRunState, ExecutionEvent, ExecutionState

SUCCEEDED, FAILED = ExecutionState.SUCCEEDED, ExecutionState.FAILED
SKIPPED, CANCELLED = ExecutionState.SKIPPED, ExecutionState.CANCELLED
LOST, TIMED_OUT = ExecutionState.UPSTREAM_FAILED, ExecutionState.TIMED_OUT


def step(name: str, *dependencies: str, rule: TriggerRule = TriggerRule.ALL_SUCCESS) -> Task:
    target = HandlerTarget("work")
    return Task(name, target=target, dependencies=dependencies, trigger_rule=rule)


class Drive:
    """A run and the decisions about it, applied as they come."""

    def __init__(self, *tasks: Task, policy: FailurePolicy = FailurePolicy.FAIL_FAST) -> None:
        self.graph = Graph.build(tasks)
        self.run: Run = prepare(self.graph, policy)
        self.first = self.take(begin(self.graph, self.run))

    def take(self, decision: Decision) -> Decision:
        apply(self.run, decision)
        return decision

    def start(self, *names: str) -> None:
        for name in names:
            self.take(move_task(self.graph, self.run, name, ExecutionEvent.CLAIM))

    def finish(self, name: str, outcome: ExecutionState = SUCCEEDED) -> Decision:
        return self.take(finish_task(self.graph, self.run, name, outcome))

    def state(self, name: str) -> ExecutionState:
        return self.run.tasks[name].state

    @property
    def outcome(self) -> DagRunState:
        return self.run.progress.state


DIAMOND = (step("a"), step("b", "a"), step("c", "a"), step("d", "b", "c"))


def test_a_run_goes_from_roots_to_the_end() -> None:
    drive = Drive(*DIAMOND)
    assert drive.first.released == ("a",)
    assert drive.finish("a").released == ("b", "c")
    assert drive.finish("c").released == ()
    assert drive.finish("b").released == ("d",)
    last = drive.finish("d")
    assert last.released == ()
    assert last.outcome is DagRunState.SUCCEEDED


def test_deciding_changes_nothing_until_it_is_applied() -> None:
    drive = Drive(*DIAMOND)
    first = finish_task(drive.graph, drive.run, "a", SUCCEEDED)
    assert finish_task(drive.graph, drive.run, "a", SUCCEEDED) == first
    assert set(first.changes) == {"a", "b", "c"}


def test_a_task_ends_once() -> None:
    drive = Drive(*DIAMOND)
    drive.finish("a")
    with pytest.raises(IllegalTransition):
        drive.finish("a")


@pytest.mark.parametrize("outcome", [SUCCEEDED, FAILED, TIMED_OUT, LOST])
def test_a_task_that_was_not_released_cannot_report_an_end(outcome: ExecutionState) -> None:
    drive = Drive(*DIAMOND)
    with pytest.raises(IllegalTransition):
        drive.finish("d", outcome)


def test_a_task_that_runs_cannot_end_skipped_unless_it_is_a_fan_out() -> None:
    drive = Drive(step("a"), replace(step("each"), fan_out=FanOut("config.items")))
    drive.start("a", "each")
    with pytest.raises(IllegalTransition):
        drive.finish("a", SKIPPED)
    drive.finish("each", SKIPPED)
    assert drive.state("each") is SKIPPED


def test_a_state_that_is_no_end_is_refused() -> None:
    drive = Drive(*DIAMOND)
    with pytest.raises(IllegalTransition):
        drive.finish("a", ExecutionState.RETRYING)


def test_a_run_that_has_not_begun_takes_no_events() -> None:
    graph = Graph.build(DIAMOND)
    run = prepare(graph, FailurePolicy.CONTINUE)
    with pytest.raises(IllegalTransition):
        finish_task(graph, run, "a", SKIPPED)
    with pytest.raises(IllegalTransition):
        move_task(graph, run, "a", ExecutionEvent.HOLD)


def test_a_run_begins_once() -> None:
    drive = Drive(*DIAMOND)
    with pytest.raises(IllegalTransition):
        begin(drive.graph, drive.run)


def test_an_unreleased_task_cannot_be_claimed() -> None:
    drive = Drive(*DIAMOND)
    with pytest.raises(IllegalTransition):
        drive.start("d")
    with pytest.raises(IllegalTransition):
        move_task(drive.graph, drive.run, "d", ExecutionEvent.RELEASE)


def test_an_end_is_not_a_move() -> None:
    drive = Drive(*DIAMOND)
    drive.start("a")
    with pytest.raises(IllegalTransition):
        move_task(drive.graph, drive.run, "a", ExecutionEvent.SUCCEED)


def test_under_continue_only_the_downstream_is_lost() -> None:
    drive = Drive(*DIAMOND, step("other"), policy=FailurePolicy.CONTINUE)
    drive.finish("a")
    lost = drive.finish("b", FAILED)
    assert lost.upstream_failed == ("d",)
    assert lost.cancelled == lost.cancel_requests == ()
    drive.finish("c")
    assert drive.finish("other").outcome is DagRunState.FAILED
    assert drive.state("d") is LOST


@pytest.mark.parametrize("policy", [FailurePolicy.FAIL_FAST, FailurePolicy.RETRY])
def test_a_failure_stops_the_run(policy: FailurePolicy) -> None:
    drive = Drive(*DIAMOND, step("runs"), step("queued"), step("later", "runs"), policy=policy)
    drive.finish("a")
    drive.start("b", "runs")
    stopped = drive.finish("b", FAILED)
    assert stopped.upstream_failed == ("d",)
    assert stopped.cancelled == ("queued", "c", "later")
    assert stopped.cancel_requests == ("runs",)
    assert stopped.outcome is None
    assert drive.finish("runs", CANCELLED).outcome is DagRunState.FAILED


def test_a_run_stops_once_whatever_fails_after_it() -> None:
    drive = Drive(step("a"), step("b"), step("c"))
    drive.start("b", "c")
    assert drive.finish("a", FAILED).cancel_requests == ("b", "c")
    assert drive.finish("b", FAILED).cancel_requests == ()


def test_a_task_in_backoff_is_cancelled_when_the_run_stops() -> None:
    drive = Drive(step("a"), step("b"))
    drive.start("b")
    drive.take(move_task(drive.graph, drive.run, "b", ExecutionEvent.RETRY))
    assert drive.finish("a", FAILED).cancelled == ("b",)
    assert drive.outcome is DagRunState.FAILED


@pytest.mark.parametrize(
    "event",
    [ExecutionEvent.RETRY, ExecutionEvent.SNOOZE, ExecutionEvent.HAND_BACK, ExecutionEvent.LOSE],
)
def test_a_stopped_run_takes_nothing_back_into_the_queue(event: ExecutionEvent) -> None:
    drive = Drive(step("a"), step("b"))
    drive.start("b")
    assert drive.finish("a", FAILED).cancel_requests == ("b",)
    back = drive.take(move_task(drive.graph, drive.run, "b", event))
    assert back.cancelled == ("b",)
    assert back.outcome is DagRunState.FAILED


def test_clean_up_and_alert_tasks_run_after_a_failure_has_stopped_the_run() -> None:
    drive = Drive(
        step("make_cluster"),
        step("work", "make_cluster"),
        step("publish", "work"),
        step("drop_cluster", "publish", rule=TriggerRule.ALL_DONE),
        step("alert", "work", "publish", rule=TriggerRule.ONE_FAILED),
        step("close_ticket", "drop_cluster"),
    )
    drive.finish("make_cluster")
    stopped = drive.finish("work", FAILED)
    assert stopped.upstream_failed == ("publish",)
    assert stopped.released == ("alert", "drop_cluster")
    assert stopped.cancelled == ()
    drive.finish("alert")
    assert drive.finish("drop_cluster").released == ("close_ticket",)
    assert drive.finish("close_ticket").outcome is DagRunState.FAILED


def test_a_running_clean_up_task_is_not_asked_to_stop() -> None:
    drive = Drive(step("a"), step("b"), step("tidy", "b", rule=TriggerRule.ALL_DONE))
    drive.finish("b")
    drive.start("tidy")
    assert drive.finish("a", FAILED).cancel_requests == ()


def test_a_cancelled_branch_sets_off_no_alert_of_its_own() -> None:
    drive = Drive(
        step("a"),
        step("b"),
        step("alert_b", "b", rule=TriggerRule.ONE_FAILED),
        step("fallback_b", "b", rule=TriggerRule.ALL_FAILED),
    )
    stopped = drive.finish("a", FAILED)
    assert stopped.cancelled == ("b",)
    assert stopped.skipped == ("alert_b", "fallback_b")


def test_a_fallback_runs_and_the_run_still_counts_as_failed() -> None:
    drive = Drive(
        step("primary"),
        step("fallback", "primary", rule=TriggerRule.ALL_FAILED),
        step("join", "primary", "fallback", rule=TriggerRule.ONE_SUCCESS),
    )
    assert drive.finish("primary", TIMED_OUT).released == ("fallback",)
    assert drive.finish("fallback").released == ("join",)
    assert drive.finish("join").outcome is DagRunState.FAILED


def test_a_skip_passes_down_until_a_rule_accepts_it() -> None:
    drive = Drive(
        step("branch"),
        step("next", "branch"),
        step("join", "next", rule=TriggerRule.NONE_FAILED),
        step("after_all", "next", rule=TriggerRule.ALL_DONE),
    )
    skipped = drive.finish("branch", SKIPPED)
    assert skipped.skipped == ("next",)
    assert skipped.released == ("join", "after_all")
    drive.finish("join")
    assert drive.finish("after_all").outcome is DagRunState.SUCCEEDED


def test_a_run_of_nothing_but_skips_succeeds() -> None:
    drive = Drive(step("a"), step("b", "a"))
    assert drive.finish("a", SKIPPED).outcome is DagRunState.SUCCEEDED


def test_one_success_fires_at_the_first_and_only_once() -> None:
    drive = Drive(step("a"), step("b"), step("quick", "a", "b", rule=TriggerRule.ONE_SUCCESS))
    assert drive.finish("a").released == ("quick",)
    assert drive.finish("b").released == ()
    assert drive.finish("quick").outcome is DagRunState.SUCCEEDED


def test_an_always_task_starts_with_the_run() -> None:
    drive = Drive(step("a"), step("watch", "a", rule=TriggerRule.ALWAYS))
    assert drive.first.released == ("a", "watch")


def test_a_task_that_waits_for_an_event_is_released_into_waiting() -> None:
    approval = Task("approve", wait_for=WaitFor("approved"), dependencies=("a",))
    drive = Drive(step("a"), approval, step("ship", "approve"))
    assert drive.finish("a").released == ("approve",)
    assert drive.state("approve") is ExecutionState.WAITING
    assert drive.finish("approve").released == ("ship",)


def test_an_approval_that_does_not_come_fails_the_run() -> None:
    drive = Drive(Task("approve", wait_for=WaitFor("approved")), step("ship", "approve"))
    assert drive.finish("approve", TIMED_OUT).upstream_failed == ("ship",)
    assert drive.outcome is DagRunState.FAILED


def test_a_condition_that_cannot_be_evaluated_fails_its_task_before_it_starts() -> None:
    waiting = Task("approve", wait_for=WaitFor("approved"))
    drive = Drive(step("a"), waiting, policy=FailurePolicy.CONTINUE)
    drive.finish("a", FAILED)
    assert drive.finish("approve", FAILED).outcome is DagRunState.FAILED


def test_an_operator_can_skip_or_cancel_a_task_before_its_turn() -> None:
    drive = Drive(*DIAMOND, policy=FailurePolicy.FAIL_FAST)
    assert drive.finish("b", CANCELLED).cancelled == ()
    drive.finish("a")
    assert drive.finish("c").cancelled == ("d",)
    assert drive.outcome is DagRunState.CANCELLED


def test_cancelling_a_run_starts_nothing_more_clean_up_included() -> None:
    drive = Drive(*DIAMOND, step("tidy", "d", rule=TriggerRule.ALL_DONE))
    drive.finish("a")
    drive.start("b")
    stopped = drive.take(cancel(drive.graph, drive.run))
    assert stopped.cancelled == ("c", "d", "tidy")
    assert stopped.cancel_requests == ("b",)
    assert stopped.outcome is None
    last = drive.finish("b", FAILED)
    assert last.released == ()
    assert last.outcome is DagRunState.CANCELLED


def test_cancelling_twice_changes_nothing() -> None:
    drive = Drive(*DIAMOND)
    drive.start("a")
    drive.take(cancel(drive.graph, drive.run))
    again = cancel(drive.graph, drive.run)
    assert again.changes == {}
    assert again.progress == drive.run.progress


def test_a_run_can_be_cancelled_before_it_begins_but_not_when_it_is_over() -> None:
    graph = Graph.build(DIAMOND)
    run = prepare(graph, FailurePolicy.CONTINUE)
    stopped = cancel(graph, run)
    assert stopped.outcome is DagRunState.CANCELLED
    assert set(stopped.cancelled) == {"a", "b", "c", "d"}
    apply(run, stopped)
    with pytest.raises(IllegalTransition):
        cancel(graph, run)


def test_kept_tasks_are_not_run_again() -> None:
    graph = Graph.build(DIAMOND)
    run = prepare(graph, FailurePolicy.CONTINUE, kept={"a": SUCCEEDED, "b": SUCCEEDED})
    started = begin(graph, run)
    assert started.released == ("c",)
    assert started.progress.unfinished == 2


@pytest.mark.parametrize(
    ("policy", "own", "attempts"),
    [
        (FailurePolicy.FAIL_FAST, None, 1),
        (FailurePolicy.CONTINUE, None, 1),
        (FailurePolicy.RETRY, None, 4),
        (FailurePolicy.RETRY, RetryPolicy(max_attempts=1), 1),
        (FailurePolicy.CONTINUE, RetryPolicy(max_attempts=7), 7),
    ],
)
def test_retries_are_none_unless_set_and_three_under_retry(
    policy: FailurePolicy, own: RetryPolicy | None, attempts: int
) -> None:
    task = Task("a", job="j", retry_policy=own)
    assert effective_retry_policy(policy, task).max_attempts == attempts


def test_finishing_one_of_ten_thousand_parents_touches_one_child() -> None:
    roots = [step(f"t{i}") for i in range(9_999)]
    drive = Drive(*roots, step("join", *(task.name for task in roots)))
    before = time.process_time()
    for task in roots[:-1]:
        decision = drive.finish(task.name)
        assert len(decision.changes) == 2
        assert decision.released == ()
    assert time.process_time() - before < 5
    assert drive.finish(roots[-1].name).released == ("join",)


def test_a_failure_at_the_head_of_ten_thousand_reaches_the_last() -> None:
    chain = [step("t0"), *(step(f"t{i}", f"t{i - 1}") for i in range(1, 10_000))]
    drive = Drive(*chain)
    decision = drive.finish("t0", FAILED)
    assert len(decision.upstream_failed) == 9_999
    assert decision.outcome is DagRunState.FAILED
