"""Retry of a finished dag run: what a new run does again, and what it takes over.

What is done again is closed downstream: no kept task ever depends on one that runs again.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from foliot.core.dag.graph import Graph
from foliot.core.dag.run import Run
from foliot.core.dag.trigger_rules import FAILURES, Verdict, judge
from foliot.core.errors import IllegalTransition, InvalidInput
from foliot.core.states import DagRunState, ExecutionState


@dataclass(frozen=True, slots=True)
class Rerun:
    """Tasks to run again, parents first, and the others with the state they ended in."""

    again: tuple[str, ...]
    kept: Mapping[str, ExecutionState]


def retry_from(graph: Graph, run: Run, from_: str | None = None) -> Rerun:
    """What a retry of a finished run does again.

    Without `from_`: every task that failed, was lost or was cancelled, and all downstream of them.
    With it: that task and all downstream, however they ended; its own parents must let it run.
    """
    if run.progress.state in {DagRunState.PENDING, DagRunState.RUNNING}:
        raise IllegalTransition(state=run.progress.state, event="RETRY")
    if from_ is None:
        bad = FAILURES | {ExecutionState.CANCELLED}
        start = [name for name, task in run.tasks.items() if task.state in bad]
    else:
        _check_start(graph, run, from_)
        start = [from_]
    again = graph.downstream(start) | set(start)
    return Rerun(
        again=tuple(name for name in graph.order if name in again),
        kept={name: task.state for name, task in run.tasks.items() if name not in again},
    )


def _check_start(graph: Graph, run: Run, from_: str) -> None:
    """A task whose kept parents forbid it would be lost again at once: better said now."""
    if from_ not in graph.tasks:
        hint = f"name one of its tasks, {graph.order[0]!r} for instance"
        raise InvalidInput(f"{from_!r} is not a task of this DAG", field="from", hint=hint)
    task = graph.tasks[from_]
    if judge(task.trigger_rule, run.tasks[from_].parents) is Verdict.RUN:
        return
    bad = FAILURES | {ExecutionState.CANCELLED}
    lost = [name for name in task.dependencies if run.tasks[name].state in bad]
    hint = f"retry from {lost[0]!r}" if lost else "its parents were skipped: change their condition"
    raise InvalidInput(f"the parents of {from_!r} do not let it run", field="from", hint=hint)
