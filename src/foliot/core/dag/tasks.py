"""What one task of a DAG is, and what can be wrong with it on its own.

Whether its dependencies exist and lead anywhere is the graph's question.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from foliot.core.dag.expressions import Path, parse, parse_path, paths
from foliot.core.dag.fan_out import FanOut
from foliot.core.dag.references import find_references
from foliot.core.dag.trigger_rules import TriggerRule
from foliot.core.errors import InvalidExpression, InvalidGraph
from foliot.core.model import Json, RetryPolicy, Target

NAME_LENGTH_MAX: Final = 200
# No bracket, since name[3] is an instance; no slash, since names stand in URLs.
_NAME: Final = re.compile(r"\w[\w.-]*")


@dataclass(frozen=True, slots=True)
class WaitFor:
    """Hold the task until a signal with this name comes, an approval for instance."""

    event: str
    timeout_seconds: float = 86_400


@dataclass(frozen=True, slots=True)
class Task:
    """One step. It has exactly one of `target`, `job`, `sub_dag` and `wait_for`.

    `retry_policy` None means that the task has no retries of its own.
    """

    name: str
    target: Target | None = None
    payload: Json = None
    timeout_seconds: float = 3600
    retry_policy: RetryPolicy | None = None
    priority: int = 5
    queue: str = "default"
    dependencies: tuple[str, ...] = ()
    trigger_rule: TriggerRule = TriggerRule.ALL_SUCCESS
    condition: str | None = None
    fan_out: FanOut | None = None
    wait_for: WaitFor | None = None
    job: str | None = None
    sub_dag: str | None = None


def check_task(task: Task, field: str) -> None:
    """Refuse a task that could not run in any graph; `field` is where it stands: `tasks[3]`."""
    if len(task.name) > NAME_LENGTH_MAX or not _NAME.fullmatch(task.name):
        hint = f"use letters, digits, _ - and ., up to {NAME_LENGTH_MAX} characters"
        raise InvalidGraph(f"{task.name[:80]!r} is no name for a task", f"{field}.name", hint)
    _check_kind(task, field)
    _check_positive(task.timeout_seconds, f"{field}.timeout_seconds")
    if task.wait_for is not None:
        _check_positive(task.wait_for.timeout_seconds, f"{field}.wait_for.timeout_seconds")
        if not task.wait_for.event:
            hint = "name the event that a signal will carry"
            raise InvalidGraph("the event has no name", f"{field}.wait_for.event", hint)
    if task.fan_out is not None:
        _check_fan_out(task.fan_out, field)
    for where, path in references(task, field):
        _check_reference(task, path, where)


def references(task: Task, field: str) -> Iterator[tuple[str, Path]]:
    """What the task's condition, fan-out and payload read, each with its field."""
    if task.condition is not None:
        where = f"{field}.condition"
        yield from ((where, path) for path in _paths_of_condition(task.condition, where))
    if task.fan_out is not None:
        where = f"{field}.fan_out.over"
        yield where, _path_of_fan_out(task.fan_out.over, where)
    yield from find_references(task.payload, f"{field}.payload")


def _check_kind(task: Task, field: str) -> None:
    kinds = {
        "target": task.target,
        "job": task.job,
        "sub_dag": task.sub_dag,
        "wait_for": task.wait_for,
    }
    given = [kind for kind, value in kinds.items() if value is not None]
    if len(given) != 1:
        found = f"{task.name!r} has {' and '.join(given) or 'nothing to run'}"
        raise InvalidGraph(found, field, "give exactly one of target, job, sub_dag, wait_for")
    if task.wait_for is not None and task.fan_out is not None:
        reason = f"{task.name!r} waits for an event, which comes once"
        raise InvalidGraph(reason, f"{field}.fan_out", "fan out a task that runs something")


def _check_positive(seconds: float, field: str) -> None:
    if not (math.isfinite(seconds) and seconds > 0):
        raise InvalidGraph(f"{seconds} is no timeout", field, "give seconds above 0")


def _check_fan_out(fan_out: FanOut, field: str) -> None:
    if fan_out.max_concurrency is not None and fan_out.max_concurrency < 1:
        where = f"{field}.fan_out.max_concurrency"
        raise InvalidGraph("nothing could ever start", where, "give at least 1, or null for all")


def _check_reference(task: Task, path: Path, where: str) -> None:
    if path.root in {"item", "index"} and (task.fan_out is None or ".payload" not in where):
        hint = "use it in the payload of a task with fan_out"
        raise InvalidGraph(f"{path.root} has no value here", where, hint)
    if path.task is not None and task.trigger_rule is TriggerRule.ALWAYS:
        reason = f"{task.name!r} starts before its parents end, so {path.text} is not there yet"
        raise InvalidGraph(reason, where, "use the trigger rule ALL_DONE")


def _paths_of_condition(condition: str, field: str) -> tuple[Path, ...]:
    try:
        return paths(parse(condition))
    except InvalidExpression as error:
        raise replace(error, field=field) from None


def _path_of_fan_out(over: str, field: str) -> Path:
    try:
        return parse_path(over)
    except InvalidExpression as error:
        raise replace(error, field=field) from None
