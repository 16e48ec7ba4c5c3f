"""Does the language parse what it promises, and refuse the rest with the place and the fix?"""

import re

import pytest

from foliot.core.dag.expressions import (
    DEPTH_MAX,
    LENGTH_MAX,
    AllOf,
    AnyOf,
    Compare,
    Expression,
    ListOf,
    Literal,
    Not,
    Path,
    parse,
    parse_path,
    paths,
)
from foliot.core.errors import InvalidExpression


def path(text: str, *steps: str | int) -> Path:
    root = re.split(r"[.\[]", text, maxsplit=1)[0]
    return Path(root, steps, text)


X = path("config.x", "x")


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("true", Literal(True)),
        ("None", Literal(None)),
        ("-3", Literal(-3)),
        ("2.5e1", Literal(25.0)),
        (r"'it\'s\n'", Literal("it's\n")),
        ('"a.b and c"', Literal("a.b and c")),
        ("config", path("config")),
        ("config.x", X),
        ("results.load-dim.rows[0]", path("results.load-dim.rows[0]", "load-dim", "rows", 0)),
        ("results['a.b'].x[-1]", path("results['a.b'].x[-1]", "a.b", "x", -1)),
        ("results.in.and", path("results.in.and", "in", "and")),
        ("index", path("index")),
        ("config.x == 1", Compare("==", X, Literal(1))),
        ("config.x in[1]", Compare("in", X, ListOf((Literal(1),)))),
        ("config.x not in []", Compare("not in", X, ListOf(()))),
        ("not config.x == 1", Not(Compare("==", X, Literal(1)))),
        ("true or false and config.x", AnyOf((Literal(True), AllOf((Literal(False), X))))),
        ("(true or false) and config.x", AllOf((AnyOf((Literal(True), Literal(False))), X))),
        (" \n config.x\t", X),
    ],
)
def test_an_expression_means_what_it_says(text: str, meaning: Expression) -> None:
    assert parse(text) == meaning


@pytest.mark.parametrize(
    ("text", "position", "hint"),
    [
        ("", 0, "write a path"),
        ("config.x ==", 11, "write a path"),
        ("config.x = 1", 9, "=="),
        ("1 < 2 < 3", 6, "a < b and b < c"),
        ("config.x config.y", 9, "and, or"),
        ("(true", 5, "add )"),
        ("[1 2]", 3, "add , or ]"),
        ("[1,", 3, "write a path"),
        ("'open", 0, "close the quote"),
        (r"'\x41'", 0, r"\n"),
        ("1e999", 0, "1.8e308"),
        ("rows > 3", 0, "results.<task>"),
        ("results", 0, "results.<task>"),
        ("results[0]", 0, "results.<task>"),
        ("config.x()", 8, "and, or"),
        ("config.x + 1", 9, "allowed are"),
        ("__import__('os')", 0, "results.<task>"),
        ("config.x is null", 9, "and, or"),
        ("not", 3, "write a path"),
        ("config.x not 3", 9, "and, or"),
        ("config.x; true", 8, "allowed are"),
    ],
)
def test_what_does_not_parse_is_refused_with_its_place(text: str, position: int, hint: str) -> None:
    with pytest.raises(InvalidExpression) as refused:
        parse(text)
    assert refused.value.position == position
    assert hint in (refused.value.hint or "")
    assert f"position {position}" in str(refused.value)


@pytest.mark.parametrize("opening", ["(", "[", "not "])
def test_depth_is_bounded(opening: str) -> None:
    closing = {"(": ")", "[": "]", "not ": ""}[opening]
    parse(opening * DEPTH_MAX + "true" + closing * DEPTH_MAX)
    with pytest.raises(InvalidExpression, match="nested too deeply"):
        parse(opening * (DEPTH_MAX + 1) + "true" + closing * (DEPTH_MAX + 1))


def test_length_is_bounded() -> None:
    parse("true" + " " * (LENGTH_MAX - 4))
    with pytest.raises(InvalidExpression, match="too long"):
        parse("true" + " " * (LENGTH_MAX - 3))


def test_every_path_is_listed_for_validation() -> None:
    found = paths(parse("not (results.a.x in [config.y, 3]) or results.b"))
    assert [path.text for path in found] == ["results.a.x", "config.y", "results.b"]
    assert [path.task for path in found] == ["a", None, "b"]


def test_a_path_alone_is_asked_for_where_only_a_path_will_do() -> None:
    assert parse_path("config.x") == X
    with pytest.raises(InvalidExpression, match="not a path"):
        parse_path("config.x == 1")
