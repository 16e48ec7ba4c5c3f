"""Random runs of random graphs agree, after every step, with an interpreter that counts nothing.

The interpreter keeps only how each task stands. After each event it looks at every task again and
again until nothing changes, and reads trigger rules as sentences about the parents' states.
"""

from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.core.dag.graph import Graph
from foliot.core.dag.rerun import retry_from
from foliot.core.dag.run import (
    Decision,
    FailurePolicy,
    Run,
    apply,
    begin,
    cancel,
    finish_task,
    move_task,
    prepare,
)
from foliot.core.dag.tasks import Task
from foliot.core.dag.trigger_rules import TriggerRule
from foliot.core.errors import InvalidGraph
from foliot.core.model import HandlerTarget
from foliot.core.states import TERMINAL, DagRunState, ExecutionEvent, ExecutionState

S = ExecutionState
BAD = {S.FAILED, S.TIMED_OUT, S.UPSTREAM_FAILED}
ENDS = (S.SUCCEEDED, S.SUCCEEDED, S.SUCCEEDED, S.FAILED, S.TIMED_OUT, S.SKIPPED, S.CANCELLED)


@st.composite
def graphs(draw: st.DrawFn, rules: tuple[TriggerRule, ...] = tuple(TriggerRule)) -> Graph:
    size = draw(st.integers(1, 12))
    tasks = []
    for place in range(size):
        parents = draw(st.sets(st.integers(0, place - 1), max_size=4)) if place else set()
        tasks.append(
            Task(
                f"t{place}",
                target=HandlerTarget("work"),
                dependencies=tuple(f"t{parent}" for parent in sorted(parents)),
                trigger_rule=draw(st.sampled_from(rules)),
            )
        )
    return Graph.build(draw(st.permutations(tasks)))


class Interpreter:
    def __init__(self, graph: Graph, policy: FailurePolicy) -> None:
        self.tasks = graph.tasks
        self.policy = policy
        self.state = dict.fromkeys(graph.tasks, S.WAITING)
        self.halted = False
        self.cancelled_by_user = False
        self.settle()

    def survives(self, name: str) -> bool:
        task = self.tasks[name]
        cleans_up = task.trigger_rule.name in {"ALL_DONE", "ALL_FAILED", "ONE_FAILED", "ALWAYS"}
        return cleans_up or any(self.survives(parent) for parent in task.dependencies)

    def runs(self, rule: TriggerRule, parents: list[ExecutionState]) -> bool:
        done = all(state in TERMINAL for state in parents)
        match rule:
            case TriggerRule.ALWAYS:
                return True
            case TriggerRule.ONE_SUCCESS:
                return S.SUCCEEDED in parents
            case TriggerRule.ONE_FAILED:
                return any(state in BAD for state in parents)
            case TriggerRule.ALL_DONE:
                return done
            case TriggerRule.ALL_FAILED:
                return all(state in BAD for state in parents)
            case TriggerRule.ALL_SUCCESS:
                return all(state is S.SUCCEEDED for state in parents)
            case TriggerRule.NONE_FAILED:
                return all(state in {S.SUCCEEDED, S.SKIPPED} for state in parents)
            case TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS:
                fine = all(state in {S.SUCCEEDED, S.SKIPPED} for state in parents)
                return fine and S.SUCCEEDED in parents

    def lost(self, rule: TriggerRule, parents: list[ExecutionState]) -> ExecutionState | None:
        """How a task ends whose rule does not hold and never will."""
        done = all(state in TERMINAL for state in parents)
        failed = any(state in BAD for state in parents)
        if rule is TriggerRule.ALL_FAILED:
            return S.SKIPPED if any(s in TERMINAL and s not in BAD for s in parents) else None
        if rule is TriggerRule.ONE_FAILED:
            return S.SKIPPED if done else None
        if failed and (done or rule is not TriggerRule.ONE_SUCCESS):
            return S.UPSTREAM_FAILED if rule is not TriggerRule.ALL_DONE else None
        if not done:
            return None
        return S.CANCELLED if S.CANCELLED in parents else S.SKIPPED

    def look_at(self, name: str) -> ExecutionState:
        task = self.tasks[name]
        parents = [self.state[parent] for parent in task.dependencies]
        if self.cancelled_by_user or (self.halted and not self.survives(name)):
            return S.CANCELLED
        if not parents or self.runs(task.trigger_rule, parents):
            return S.QUEUED
        return self.lost(task.trigger_rule, parents) or S.WAITING

    def settle(self) -> None:
        changing = True
        while changing:
            changing = False
            for name, state in self.state.items():
                if state is S.WAITING and (seen := self.look_at(name)) is not state:
                    self.state[name] = seen
                    changing = True

    def stop(self) -> None:
        for name, state in self.state.items():
            spared = self.survives(name) and not self.cancelled_by_user
            if state in {S.QUEUED, S.RETRYING} and not spared:
                self.state[name] = S.CANCELLED
        self.settle()

    def end(self, name: str, outcome: ExecutionState) -> None:
        self.state[name] = outcome
        self.settle()
        if outcome in BAD and self.policy is not FailurePolicy.CONTINUE:
            self.halted = True
            self.stop()

    def outcome(self) -> DagRunState:
        ends = set(self.state.values())
        if not ends <= TERMINAL:
            return DagRunState.RUNNING
        if self.cancelled_by_user:
            return DagRunState.CANCELLED
        if ends & BAD:
            return DagRunState.FAILED
        return DagRunState.CANCELLED if S.CANCELLED in ends else DagRunState.SUCCEEDED


def step(graph: Graph, run: Run, naive: Interpreter, random: Random) -> Decision:
    """One event, chosen at random, told to both."""
    live = [name for name, task in run.tasks.items() if task.state not in TERMINAL]
    running = [name for name in live if run.tasks[name].state is S.RUNNING]
    queued = [name for name in live if run.tasks[name].state in {S.QUEUED, S.RETRYING}]
    waiting = [name for name in live if run.tasks[name].state is S.WAITING]
    roll = random.random()
    if roll < 0.02:
        naive.cancelled_by_user = True
        naive.stop()
        return cancel(graph, run)
    if waiting and (roll < 0.05):
        name = random.choice(waiting)
        outcome = random.choice((S.SKIPPED, S.CANCELLED))
        naive.end(name, outcome)
        return finish_task(graph, run, name, outcome)
    if queued and (roll < 0.45 or not running):
        name = random.choice(queued)
        claimable = run.tasks[name].state is S.QUEUED
        naive.state[name] = S.RUNNING if claimable else S.QUEUED
        event = ExecutionEvent.CLAIM if claimable else ExecutionEvent.RELEASE
        return move_task(graph, run, name, event)
    name = random.choice(running)
    if roll < 0.55:
        naive.state[name] = S.RETRYING
        if naive.halted or naive.cancelled_by_user:
            naive.stop()
        return move_task(graph, run, name, ExecutionEvent.RETRY)
    outcome = random.choice([end for end in ENDS if end is not S.SKIPPED])
    naive.end(name, outcome)
    return finish_task(graph, run, name, outcome)


@given(graphs(), st.sampled_from(FailurePolicy), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=600)
def test_every_step_of_a_run_agrees_with_the_interpreter(
    graph: Graph, policy: FailurePolicy, random: Random
) -> None:
    naive = Interpreter(graph, policy)
    run = prepare(graph, policy)
    decision = begin(graph, run)
    released: list[str] = []
    for _ in range(1000):
        check_lists(graph, run, decision)
        apply(run, decision)
        released += decision.released
        assert {name: task.state for name, task in run.tasks.items()} == naive.state
        assert run.progress.state is naive.outcome()
        if decision.outcome is not None:
            break
        decision = step(graph, run, naive, random)
    assert decision.outcome is not None
    assert len(released) == len(set(released))
    assert all(task.state in TERMINAL for task in run.tasks.values())
    assert all(task.parents.pending_parents == 0 for task in run.tasks.values())


def readable(graph: Graph) -> dict[str, list[str]]:
    """Whose results each task may read, as the graph is built with such a reading or refused."""
    found: dict[str, list[str]] = {name: [] for name in graph.tasks}
    for reader, task in graph.tasks.items():
        for named in graph.upstream(reader):
            reading = replace(task, payload=f"${{results.{named}}}")
            try:
                Graph.build([*(t for t in graph.tasks.values() if t is not task), reading])
            except InvalidGraph:
                continue
            found[reader].append(named)
    return found


@given(graphs(), st.sampled_from(FailurePolicy), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=150)
def test_a_task_whose_result_may_be_read_has_ended_when_its_reader_is_released(
    graph: Graph, policy: FailurePolicy, random: Random
) -> None:
    may_read, naive = readable(graph), Interpreter(graph, policy)
    run = prepare(graph, policy)
    decision = begin(graph, run)
    while True:
        apply(run, decision)
        for reader in decision.released:
            assert {run.tasks[named].state for named in may_read[reader]} <= TERMINAL
        if decision.outcome is not None:
            break
        decision = step(graph, run, naive, random)


def check_lists(graph: Graph, run: Run, decision: Decision) -> None:
    """The names a decision lists are those whose facts it changes."""
    after = {**run.tasks, **decision.changes}
    now_released = {n for n in after if after[n].released and not run.tasks[n].released}
    assert set(decision.released) == now_released
    ended = {n: t.state for n, t in after.items() if t.state in TERMINAL}
    newly = {n: state for n, state in ended.items() if run.tasks[n].state not in TERMINAL}
    decided = {
        **dict.fromkeys(decision.skipped, S.SKIPPED),
        **dict.fromkeys(decision.upstream_failed, S.UPSTREAM_FAILED),
        **dict.fromkeys(decision.cancelled, S.CANCELLED),
    }
    assert decided.items() <= newly.items()
    assert len(newly) - len(decided) <= 1
    running = {n for n, task in after.items() if task.state is S.RUNNING}
    assert set(decision.cancel_requests) <= running
    if decision.progress.cancel_requested > run.progress.cancel_requested:
        assert set(decision.cancel_requests) == running
    elif decision.progress.halted > run.progress.halted:
        assert set(decision.cancel_requests) == running - graph.survivors


def play(
    graph: Graph, policy: FailurePolicy, ends: dict[str, ExecutionState], order: Random
) -> Run:
    """Run to the end; which task ends how is fixed, when it does is not."""
    run = prepare(graph, policy)
    apply(run, begin(graph, run))
    while run.progress.unfinished:
        live = [name for name, task in run.tasks.items() if task.state is S.QUEUED]
        name = order.choice(live)
        apply(run, finish_task(graph, run, name, ends[name]))
    return run


@given(graphs(), st.data())
@settings(deadline=None, max_examples=300)
def test_under_continue_the_order_of_ends_does_not_change_how_a_run_ends(
    graph: Graph, data: st.DataObject
) -> None:
    ends = {name: data.draw(st.sampled_from(ENDS)) for name in sorted(graph.tasks)}
    runs = [play(graph, FailurePolicy.CONTINUE, ends, Random(seed)) for seed in range(4)]
    assert all(run.progress == runs[0].progress for run in runs)
    assert all(run.tasks == runs[0].tasks for run in runs)


@given(graphs(), st.sampled_from(FailurePolicy), st.data())
@settings(deadline=None, max_examples=300)
def test_a_retry_where_all_goes_well_succeeds_and_repeats_no_kept_task(
    graph: Graph, policy: FailurePolicy, data: st.DataObject
) -> None:
    ends = {name: data.draw(st.sampled_from(ENDS)) for name in sorted(graph.tasks)}
    first = play(graph, policy, ends, Random(0))
    rerun = retry_from(graph, first)
    assert set(rerun.again) | set(rerun.kept) == set(graph.tasks)
    assert set(rerun.kept.values()) <= {S.SUCCEEDED, S.SKIPPED}
    assert all(set(graph.tasks[name].dependencies) <= set(rerun.kept) for name in rerun.kept)
    again = prepare(graph, policy, rerun.kept)
    decision = begin(graph, again)
    done: list[str] = []
    while True:
        apply(again, decision)
        live = [name for name, task in again.tasks.items() if task.state is S.QUEUED]
        if not live:
            break
        done.append(live[0])
        decision = finish_task(graph, again, live[0], S.SUCCEEDED)
    assert again.progress.state is DagRunState.SUCCEEDED
    assert set(done) <= set(rerun.again)
