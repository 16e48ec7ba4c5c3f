"""Does a condition let a task run, skip it, or fail it with a reason?"""

import pytest

from foliot.core.dag.conditions import Admission, Scope, admit, evaluate
from foliot.core.dag.expressions import parse
from foliot.core.errors import ExpressionFailed
from foliot.core.model import ErrorType, Json

SCOPE = Scope(
    results={
        "check": {"rows": 3, "ok": True, "names": ["a", "b"], "by": {"de": 1.5}},
        "none": None,
        "flags": {"on": [True, None], "off": {"x": 0}},
    },
    config={
        "mode": "full",
        "limit": 3.0,
        "day-of": "mon",
        "flags": {"on": [1, None], "off": {"x": 0}},
    },
)


@pytest.mark.parametrize(
    ("condition", "admission"),
    [
        (None, Admission.RUN),
        ("results.check.ok", Admission.RUN),
        ("not results.check.ok", Admission.SKIP),
        ("results.check.rows > 2", Admission.RUN),
        ("results.check.rows >= config.limit", Admission.RUN),
        ("results.check.rows < config.limit", Admission.SKIP),
        ("results.check.rows <= 3", Admission.RUN),
        ("results.check.rows == 3.0", Admission.RUN),
        ("results.check.rows != 3", Admission.SKIP),
        ("config.mode in ['full', 'delta']", Admission.RUN),
        ("config.mode not in ['delta']", Admission.RUN),
        ("'ul' in config.mode", Admission.RUN),
        ("'de' in results.check.by", Admission.RUN),
        ("config.day-of == 'mon'", Admission.RUN),
        ("config['day-of'] < 'tue'", Admission.RUN),
        ("results.check.names[-1] == 'b'", Admission.RUN),
        ("results.check.names == ['a', 'b']", Admission.RUN),
        ("results.check.ok == 1", Admission.SKIP),
        ("1 in [true]", Admission.SKIP),
        ("[true] == [1]", Admission.SKIP),
        ("[1] == [1.0]", Admission.RUN),
        ("[[0]] in [[[false]]]", Admission.SKIP),
        ("[[0]] in [[[0]]]", Admission.RUN),
        ("[1, 2] != [1, 2, 3]", Admission.RUN),
        ("[1, [2]] == [1, 2]", Admission.SKIP),
        ("results.flags == config.flags", Admission.SKIP),
        ("results.flags == results.flags", Admission.RUN),
        ("results.flags == results.check", Admission.SKIP),
        ("results.none == null", Admission.RUN),
        ("results.never_ran == null", Admission.RUN),
        ("results.none != null and results.none.rows > 3", Admission.SKIP),
        ("results.check.ok or results.none.rows > 3", Admission.RUN),
    ],
)
def test_a_condition_admits_or_skips(condition: str | None, admission: Admission) -> None:
    assert admit(condition, SCOPE).admission is admission


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ("results.check.row > 2", "results.check.row: there is no 'row'"),
        ("results.none.rows > 2", "null has no 'rows'"),
        ("results.check.names[2] == 'c'", "no [2] in a list of 2"),
        ("results.check.names[-3] == 'c'", "no [-3]"),
        ("results.check.names.first == 'c'", "a list has no 'first'"),
        ("results.check[0] == 1", "an object has no 0"),
        ("config.mode[0] == 'f'", "a text has no 0"),
        ("results.check.rows > 'two'", "a number and a text have no order"),
        ("results.check.ok > false", "true or false and true or false have no order"),
        ("null < 1", "null and a number have no order"),
        ("[1] < [2]", "a list and a list have no order"),
        ("3 in config.mode", "a number cannot be in a text"),
        ("3 in 3", "a number cannot be in a number"),
        ("results.check.rows", "results.check.rows: a number is neither true nor false"),
        ("config.mode and true", "config.mode: a text is neither true nor false"),
        ("not null", "null is neither true nor false"),
    ],
)
def test_a_condition_without_an_answer_fails_the_task_for_good(condition: str, says: str) -> None:
    admitted = admit(condition, SCOPE)
    assert admitted.admission is Admission.FAIL
    assert admitted.failure is not None
    assert admitted.failure.type is ErrorType.EXPRESSION_ERROR
    assert admitted.failure.do_not_retry
    assert says in admitted.failure.message


def test_a_value_that_is_not_asked_for_its_truth_keeps_its_type() -> None:
    assert evaluate(parse("[results.check.rows, config.mode]"), SCOPE) == [3, "full"]


@pytest.mark.parametrize("name", ["__class__", "keys", "__len__"])
def test_python_attributes_are_out_of_reach(name: str) -> None:
    values: tuple[Json, ...] = ({}, "text", [1], 3)
    for value in values:
        scope = Scope(config={"x": value})
        expression = parse(f"config.x.{name} == 1")
        with pytest.raises(ExpressionFailed):
            evaluate(expression, scope)


def test_fan_out_instances_see_their_item() -> None:
    item: Json = {"id": 7}
    assert evaluate(parse("item.id == 7 and index == 2"), Scope(item=item, index=2)) is True
