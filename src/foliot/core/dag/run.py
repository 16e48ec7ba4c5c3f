"""How a run of a DAG goes on: a task ends, so what starts, what never will, what is over?

The facts are plain data: a state and a tally of parents per task, a few totals per run. A rule
reads only the task that ended, its children and, where they end with it, theirs; it returns the
changes as a Decision and changes nothing. Two events look at every task once: the start of the
run, and what stops it, a first failure or a user.

A task that becomes ready is released. Its condition is then asked (`conditions.admit`), and a SKIP
or FAIL is reported back as its end. A fanned-out task or a sub-DAG counts as one task that is
RUNNING from its expansion to its join.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from foliot.core.dag.graph import Graph
from foliot.core.dag.tasks import Task
from foliot.core.dag.trigger_rules import FAILURES, ParentTally, Verdict, judge
from foliot.core.errors import IllegalTransition
from foliot.core.model import RetryPolicy
from foliot.core.states import (
    DAG_RUN,
    EXECUTION,
    TERMINAL,
    DagRunEvent,
    DagRunState,
    ExecutionEvent,
    ExecutionState,
    advance,
)


class FailurePolicy(StrEnum):
    """What a task's failure means for the run, once the task's retries are spent."""

    FAIL_FAST = "FAIL_FAST"  # stop the run; what is there for failures still runs
    CONTINUE = "CONTINUE"  # only what needs the failed task is lost
    RETRY = "RETRY"  # tasks without retries of their own get three; then as FAIL_FAST

    @property
    def stops_the_run(self) -> bool:
        return self is not FailurePolicy.CONTINUE


@dataclass(frozen=True, slots=True)
class TaskRun:
    """One task of one run. `released` says that its trigger rule held: it happens once."""

    parents: ParentTally
    state: ExecutionState = ExecutionState.WAITING
    released: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """The run as a whole. `failed` and `cancelled` count tasks that ended so."""

    state: DagRunState = DagRunState.PENDING
    unfinished: int = 0
    failed: int = 0
    cancelled: int = 0
    halted: bool = False  # a failure has stopped it: nothing but survivors may start
    cancel_requested: bool = False  # a user has stopped it: nothing may start


@dataclass(slots=True)
class Run:
    """The facts. Only `apply` changes them; a caller may as well read them from tables."""

    policy: FailurePolicy
    progress: Progress
    tasks: dict[str, TaskRun]


@dataclass(frozen=True, slots=True)
class Decision:
    """What follows. Names stand in the order in which things happen, each at most once.

    `released` may start; `skipped`, `upstream_failed` and `cancelled` end by this decision;
    `cancel_requests` are running and are asked to stop. `changes` and `progress` are the new facts.
    """

    progress: Progress
    changes: Mapping[str, TaskRun] = field(default_factory=dict)
    released: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    upstream_failed: tuple[str, ...] = ()
    cancelled: tuple[str, ...] = ()
    cancel_requests: tuple[str, ...] = ()

    @property
    def outcome(self) -> DagRunState | None:
        """How the run has ended, if it has."""
        over = self.progress.state not in {DagRunState.PENDING, DagRunState.RUNNING}
        return self.progress.state if over else None


_ATTEMPTS_UNDER_RETRY: Final = 4
_ENDINGS: Final[Mapping[ExecutionState, ExecutionEvent]] = {
    ExecutionState.SUCCEEDED: ExecutionEvent.SUCCEED,
    ExecutionState.FAILED: ExecutionEvent.FAIL,
    ExecutionState.TIMED_OUT: ExecutionEvent.TIME_OUT,
    ExecutionState.CANCELLED: ExecutionEvent.CANCEL,
    ExecutionState.SKIPPED: ExecutionEvent.SKIP,
    ExecutionState.UPSTREAM_FAILED: ExecutionEvent.FAIL_UPSTREAM,
}
_OPERATOR_ENDINGS: Final = frozenset({ExecutionState.SKIPPED, ExecutionState.CANCELLED})
_DECIDED_ENDINGS: Final = {
    Verdict.SKIP: ExecutionState.SKIPPED,
    Verdict.FAIL_UPSTREAM: ExecutionState.UPSTREAM_FAILED,
    Verdict.CANCEL: ExecutionState.CANCELLED,
}


def effective_retry_policy(policy: FailurePolicy, task: Task) -> RetryPolicy:
    """The task's own retries, even if that is none; else none, or three under RETRY."""
    if task.retry_policy is not None:
        return task.retry_policy
    retried = policy is FailurePolicy.RETRY
    return RetryPolicy(max_attempts=_ATTEMPTS_UNDER_RETRY if retried else 1)


def prepare(
    graph: Graph, policy: FailurePolicy, kept: Mapping[str, ExecutionState] | None = None
) -> Run:
    """A run that has not begun. `kept` tasks count as ended, as they did in an earlier run."""
    kept = kept or {}
    tasks: dict[str, TaskRun] = {}
    for name, task in graph.tasks.items():
        parents = ParentTally(pending_parents=len(task.dependencies))
        for parent in task.dependencies:
            if parent in kept:
                parents = parents.count(kept[parent])
        state = kept.get(name, ExecutionState.WAITING)
        tasks[name] = TaskRun(parents, state, released=name in kept)
    progress = Progress(
        unfinished=len(tasks) - len(kept),
        failed=sum(state in FAILURES for state in kept.values()),
        cancelled=sum(state is ExecutionState.CANCELLED for state in kept.values()),
    )
    return Run(policy, progress, tasks)


def begin(graph: Graph, run: Run) -> Decision:
    """The run starts: everything that waits for nobody is released."""
    draft = _Draft(graph, run)
    draft.move_run(DagRunEvent.START)
    for name in graph.order:
        draft.settle(name)
        draft.spread()
    return draft.decision()


def move_task(graph: Graph, run: Run, task: str, event: ExecutionEvent) -> Decision:
    """A released task is claimed, retried, held, handed back: anything but its end.

    A stopped run takes nothing back into the queue: what comes to rest there is cancelled.
    """
    draft = _Draft(graph, run)
    before = draft.get(task)
    state = advance(EXECUTION, before.state, event)
    if state in TERMINAL or not before.released:
        raise IllegalTransition(state=before.state, event=event)
    draft.put(task, replace(before, state=state))
    if state is not ExecutionState.RUNNING and draft.may_not_start(task):
        draft.end_by_decision(task, ExecutionState.CANCELLED)
        draft.spread()
    return draft.decision()


def finish_task(graph: Graph, run: Run, task: str, outcome: ExecutionState) -> Decision:
    """A task has ended, its retries spent: what is ready now, what is lost, is the run over?

    Only SKIPPED and CANCELLED can end a task before it is released: an operator's word. Of what
    runs, only a fan-out can end SKIPPED: if every instance was.
    """
    if run.progress.state is not DagRunState.RUNNING:
        raise IllegalTransition(state=run.progress.state, event=outcome)
    draft = _Draft(graph, run)
    before = draft.get(task)
    if not before.released and outcome not in _OPERATOR_ENDINGS:
        raise IllegalTransition(state=before.state, event=_ENDINGS.get(outcome, outcome))
    if (
        outcome is ExecutionState.SKIPPED
        and before.state is ExecutionState.RUNNING
        and graph.tasks[task].fan_out is None
    ):
        raise IllegalTransition(state=before.state, event=ExecutionEvent.SKIP)
    draft.end(task, outcome)
    draft.spread()
    if outcome in FAILURES and run.policy.stops_the_run:
        draft.halt()
    return draft.decision()


def cancel(graph: Graph, run: Run) -> Decision:
    """A user stops the run: nothing more starts, clean-up included; what runs is asked to stop.

    Asking twice changes nothing. A run that is over cannot be cancelled.
    """
    draft = _Draft(graph, run)
    advance(DAG_RUN, run.progress.state, DagRunEvent.CANCEL)
    draft.progress = replace(draft.progress, cancel_requested=True)
    draft.stop(graph.order)
    if run.progress.state is DagRunState.PENDING:
        draft.move_run(DagRunEvent.CANCEL)
    return draft.decision()


def apply(run: Run, decision: Decision) -> None:
    """Make the decision's facts the run's."""
    run.tasks.update(decision.changes)
    run.progress = decision.progress


class _Draft:
    """A decision in the making: it reads through to the run and writes beside it."""

    def __init__(self, graph: Graph, run: Run) -> None:
        self.graph = graph
        self.run = run
        self.progress = run.progress
        self.changes: dict[str, TaskRun] = {}
        self.released: list[str] = []
        self.ended_by_decision: dict[ExecutionState, list[str]] = {
            state: [] for state in _DECIDED_ENDINGS.values()
        }
        self.cancel_requests: list[str] = []
        self.to_spread: deque[tuple[str, ExecutionState]] = deque()

    def get(self, name: str) -> TaskRun:
        return self.changes.get(name) or self.run.tasks[name]

    def put(self, name: str, task: TaskRun) -> None:
        self.changes[name] = task

    def move_run(self, event: DagRunEvent) -> None:
        self.progress = replace(self.progress, state=advance(DAG_RUN, self.progress.state, event))

    def may_not_start(self, name: str) -> bool:
        stopped_by_failure = self.progress.halted and name not in self.graph.survivors
        return self.progress.cancel_requested or stopped_by_failure

    def end(self, name: str, outcome: ExecutionState) -> None:
        """Move the task to its terminal state and remember to tell its children."""
        task = self.get(name)
        self.put(name, replace(task, state=_terminal(task.state, outcome)))
        self.progress = replace(
            self.progress,
            unfinished=self.progress.unfinished - 1,
            failed=self.progress.failed + (outcome in FAILURES),
            cancelled=self.progress.cancelled + (outcome is ExecutionState.CANCELLED),
        )
        self.to_spread.append((name, outcome))

    def end_by_decision(self, name: str, outcome: ExecutionState) -> None:
        self.end(name, outcome)
        self.ended_by_decision[outcome].append(name)

    def spread(self) -> None:
        """Tell the children of all that ended, and theirs if that ends them, in order."""
        while self.to_spread:
            name, outcome = self.to_spread.popleft()
            for child in self.graph.children[name]:
                task = self.get(child)
                self.put(child, replace(task, parents=task.parents.count(outcome)))
                self.settle(child)

    def settle(self, name: str) -> None:
        """Let the trigger rule decide about a task that is neither released nor ended."""
        task = self.get(name)
        if task.released or task.state in TERMINAL:
            return
        verdict = judge(self.graph.tasks[name].trigger_rule, task.parents)
        if verdict is Verdict.RUN:
            self.release(name, task)
        elif verdict is not Verdict.WAIT:
            self.end_by_decision(name, _DECIDED_ENDINGS[verdict])

    def release(self, name: str, task: TaskRun) -> None:
        """The task may start. One that waits for an event stays WAITING, now for the event."""
        state = task.state
        if self.graph.tasks[name].wait_for is None:
            state = advance(EXECUTION, state, ExecutionEvent.RELEASE)
        self.put(name, replace(task, state=state, released=True))
        self.released.append(name)

    def halt(self) -> None:
        """A failure stops the run, all but the survivors.

        Clean-up, fallback and alert tasks are written for this very moment, and so is what follows
        them: they go on by their own rules. Everything else that has not started is cancelled,
        unless the failure has already reached it as UPSTREAM_FAILED; what runs is asked to stop.
        """
        if self.progress.halted:
            return
        self.progress = replace(self.progress, halted=True)
        self.stop(name for name in self.graph.order if name not in self.graph.survivors)

    def stop(self, names: Iterable[str]) -> None:
        for name in names:
            state = self.get(name).state
            if state is ExecutionState.RUNNING:
                self.cancel_requests.append(name)
            elif state not in TERMINAL:
                self.end_by_decision(name, ExecutionState.CANCELLED)
        self.spread()

    def decision(self) -> Decision:
        self.close_run()
        return Decision(
            progress=self.progress,
            changes=self.changes,
            released=tuple(self.released),
            skipped=tuple(self.ended_by_decision[ExecutionState.SKIPPED]),
            upstream_failed=tuple(self.ended_by_decision[ExecutionState.UPSTREAM_FAILED]),
            cancelled=tuple(self.ended_by_decision[ExecutionState.CANCELLED]),
            cancel_requests=tuple(self.cancel_requests),
        )

    def close_run(self) -> None:
        """The run is over when its last task is.

        A run with a failed task has FAILED, also where a clean-up or a fallback came after it: a
        green run means that every task did its work or was skipped on purpose. Judging by the last
        tasks alone would let a clean-up that succeeds hide the failure it cleans up after.
        """
        if self.progress.unfinished or self.progress.state is not DagRunState.RUNNING:
            return
        if self.progress.cancel_requested:
            self.move_run(DagRunEvent.CANCEL)
        elif self.progress.failed:
            self.move_run(DagRunEvent.FAIL)
        elif self.progress.cancelled:
            self.move_run(DagRunEvent.CANCEL)
        else:
            self.move_run(DagRunEvent.SUCCEED)


def _terminal(state: ExecutionState, outcome: ExecutionState) -> ExecutionState:
    """The state `outcome`, reached by legal steps.

    A run need not have heard of each release and claim on the way: an end implies them.
    """
    event = _ENDINGS.get(outcome)
    if event is None:
        raise IllegalTransition(state=state, event=outcome)
    if (state, event) in EXECUTION:
        return advance(EXECUTION, state, event)
    if state not in {ExecutionState.QUEUED, ExecutionState.RUNNING}:
        state = advance(EXECUTION, state, ExecutionEvent.RELEASE)
    if state is ExecutionState.QUEUED:
        state = advance(EXECUTION, state, ExecutionEvent.CLAIM)
    return advance(EXECUTION, state, event)
