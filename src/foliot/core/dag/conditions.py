"""Conditional branches: may this task run, given what its upstream found and how the run is set?

A condition is true (the task runs), false (it is skipped) or cannot be evaluated (it fails with an
EXPRESSION_ERROR that says why). Values are those of JSON and are compared strictly: true is not 1,
a number has no order with a text, and only true and false are conditions.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from foliot.core.dag.expressions import (
    AllOf,
    AnyOf,
    Compare,
    Expression,
    ListOf,
    Literal,
    Not,
    Path,
    parse,
)
from foliot.core.errors import ExpressionFailed
from foliot.core.model import ErrorType, Failure, Json


@dataclass(frozen=True, slots=True)
class Scope:
    """What an expression can see. A task that left no result (skipped, failed) reads as null.

    Nothing else does: a graph is refused if it reads a task that may not have ended yet.
    """

    results: Mapping[str, Json] = field(default_factory=dict)
    config: Json = None
    item: Json = None
    index: int | None = None


class Admission(StrEnum):
    RUN = "RUN"
    SKIP = "SKIP"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Admitted:
    """What the condition says; `failure` comes with FAIL and is final: asking again is no help."""

    admission: Admission
    failure: Failure | None = None


def admit(condition: str | None, scope: Scope) -> Admitted:
    """Whether a task whose trigger rule holds may run."""
    if condition is None:
        return Admitted(Admission.RUN)
    try:
        holds = evaluate_condition(parse(condition), scope)
    except ExpressionFailed as error:
        return Admitted(Admission.FAIL, expression_failure(error))
    return Admitted(Admission.RUN if holds else Admission.SKIP)


def expression_failure(error: ExpressionFailed) -> Failure:
    """The failure of a task whose condition, reference or fan-out cannot be evaluated."""
    return Failure(type=ErrorType.EXPRESSION_ERROR, message=str(error), do_not_retry=True)


def evaluate_condition(expression: Expression, scope: Scope) -> bool:
    """True or false, or ExpressionFailed: no other value is taken for one of them."""
    value = evaluate(expression, scope)
    if isinstance(value, bool):
        return value
    subject = expression.text if isinstance(expression, Path) else "the condition"
    raise ExpressionFailed(f"{_kind(value)} is neither true nor false: compare it", subject)


def evaluate(expression: Expression, scope: Scope) -> Json:
    """The value of the expression; `and` and `or` stop at the first operand that decides."""
    match expression:
        case Literal(value):
            return value
        case Path():
            return look_up(expression, scope)
        case ListOf(items):
            return [evaluate(item, scope) for item in items]
        case Not(operand):
            return not evaluate_condition(operand, scope)
        case AllOf(operands):
            return all(evaluate_condition(operand, scope) for operand in operands)
        case AnyOf(operands):
            return any(evaluate_condition(operand, scope) for operand in operands)
        case Compare(operator, left, right):
            return _compare(operator, evaluate(left, scope), evaluate(right, scope))


def look_up(path: Path, scope: Scope) -> Json:
    """The value a path leads to; a step that leads nowhere is an error, not null."""
    steps = path.steps
    value: Json = getattr(scope, path.root)
    if path.root == "results":
        value, steps = scope.results.get(str(steps[0])), steps[1:]
    for step in steps:
        value = _step_into(value, step, path)
    return value


def _step_into(value: Json, step: str | int, path: Path) -> Json:
    if isinstance(value, Mapping) and isinstance(step, str):
        if step not in value:
            raise ExpressionFailed(f"there is no {step!r}", path.text)
        return value[step]
    if isinstance(value, (list, tuple)) and isinstance(step, int):
        if not -len(value) <= step < len(value):
            raise ExpressionFailed(f"there is no [{step}] in a list of {len(value)}", path.text)
        return value[step]
    raise ExpressionFailed(f"{_kind(value)} has no {step!r}", path.text)


def _compare(operator: str, left: Json, right: Json) -> bool:
    match operator:
        case "==":
            return _same(left, right)
        case "!=":
            return not _same(left, right)
        case "in":
            return _contains(right, left)
        case "not in":
            return not _contains(right, left)
        case _:
            return _ordered(operator, left, right)


def _same(left: Json, right: Json) -> bool:
    """Equal as JSON, inside lists and objects too: there as well true is not 1, and 1.0 is."""
    waiting = [(left, right)]
    while waiting:
        one, other = waiting.pop()
        if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
            if len(one) != len(other):
                return False
            waiting.extend(zip(one, other, strict=True))
        elif isinstance(one, Mapping) and isinstance(other, Mapping):
            if one.keys() != other.keys():
                return False
            waiting.extend((value, other[key]) for key, value in one.items())
        elif isinstance(one, bool) is not isinstance(other, bool) or one != other:
            return False
    return True


def _contains(container: Json, value: Json) -> bool:
    if isinstance(container, (list, tuple)):
        return any(_same(value, member) for member in container)
    if isinstance(container, (str, Mapping)) and isinstance(value, str):
        return value in container
    raise ExpressionFailed(f"{_kind(value)} cannot be in {_kind(container)}", "in")


def _ordered(operator: str, left: Json, right: Json) -> bool:
    kinds = {_kind(left), _kind(right)}
    if len(kinds) != 1 or not kinds <= {_NUMBER, _TEXT}:
        raise ExpressionFailed(f"{_kind(left)} and {_kind(right)} have no order", operator)
    match operator:
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case ">":
            return bool(left > right)
        case _:
            return bool(left >= right)


_NUMBER: Final = "a number"
_TEXT: Final = "a text"


def _kind(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return _NUMBER
        case str():
            return _TEXT
        case list() | tuple():
            return "a list"
        case _:
            return "an object"
