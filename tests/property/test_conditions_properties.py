"""For all texts the parser answers; for a safe subset the answer is the one Python gives."""

import ast
from contextlib import suppress

from hypothesis import example, given, settings
from hypothesis import strategies as st

from foliot.core.dag.conditions import Scope, evaluate, evaluate_condition
from foliot.core.dag.expressions import parse, paths
from foliot.core.dag.references import find_references, render
from foliot.core.errors import ExpressionFailed, InvalidExpression
from foliot.core.model import Json

CONFIG: Json = {"n": 3, "f": 2.5, "t": "abc", "l": [1, 2, "x"], "yes": True, "no": False}
PYTHON_NAMES = {f"config_{key}": value for key, value in CONFIG.items()}
PIECES = [
    "config.n", "results.a", "results", "config[", "]", "(", ")", "not", "in", "and", "or", "==",
    "<", "1", "-", "1e9", "'x'", '"', "true", "null", ",", ".", " ", "\\", "${", "}", "é", "[0]",
]  # fmt: skip

numbers = st.sampled_from(["config.n", "config.f", "0", "-1", "3", "2.5", "100"])
texts = st.sampled_from(["config.t", "'abc'", '"b"', "''", "'zz'"])
order = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
comparisons = st.one_of(
    st.builds("{} {} {}".format, numbers, order, numbers),
    st.builds("{} {} {}".format, texts, order, texts),
    st.builds("{} {} {}".format, texts, st.sampled_from(["in", "not in"]), texts),
    st.builds("{} {} config.l".format, numbers | texts, st.sampled_from(["in", "not in"])),
    st.builds("{} in [{}, {}]".format, numbers | texts, numbers, texts),
    st.builds("{} {} {}".format, numbers, st.sampled_from(["==", "!="]), texts),
)
booleans = comparisons | st.sampled_from(["True", "False", "config.yes", "config.no"])
conditions = st.recursive(
    booleans,
    lambda inner: st.one_of(
        st.builds("({})".format, inner),
        st.builds("not {}".format, inner),
        st.builds("{} and {}".format, inner, inner),
        st.builds("{} or {}".format, inner, inner),
    ),
    max_leaves=12,
)


def python_value(text: str) -> Json:
    """What Python makes of the same text, by walking its own syntax tree."""
    tree = ast.parse(text.replace("config.", "config_"), mode="eval")
    code = compile(tree, "<condition>", "eval")
    return eval(code, {"__builtins__": {}}, PYTHON_NAMES)  # noqa: S307  the oracle, on our text


@given(conditions)
@settings(deadline=None, max_examples=600)
def test_a_condition_has_the_value_python_gives_it(text: str) -> None:
    assert evaluate_condition(parse(text), Scope(config=CONFIG)) is python_value(text)


@given(st.text(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
@example("(" * 3000)
@example("not " * 400)
@example("[" * 1000)
@example("1" * 2000)
@settings(deadline=None, max_examples=1500)
def test_any_text_parses_or_is_refused_with_a_place_and_a_fix(text: str) -> None:
    try:
        expression = parse(text)
    except InvalidExpression as refused:
        place, hint = refused.position, refused.hint
    else:
        paths(expression)
        with suppress(ExpressionFailed):
            evaluate(expression, Scope(config=CONFIG))
        return
    assert 0 <= place <= len(text)
    assert hint


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(json_values)
@settings(deadline=None, max_examples=300)
def test_a_whole_reference_hands_the_value_over_unchanged(value: Json) -> None:
    rendered = render({"k": ["${results.a}"]}, Scope(results={"a": value}))
    assert rendered == {"k": [value]}
    assert type(rendered["k"][0]) is type(value)


@given(st.text(max_size=40) | st.lists(st.sampled_from(PIECES), max_size=10).map("".join))
@settings(deadline=None, max_examples=800)
def test_what_validation_accepts_can_be_rendered_or_lacks_a_value(text: str) -> None:
    try:
        found = list(find_references(text, "payload"))
    except InvalidExpression:
        return
    with suppress(ExpressionFailed):
        rendered = render(text, Scope(config=CONFIG))
        if not found and "$${" not in text:
            assert rendered == text
