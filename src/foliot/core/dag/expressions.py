"""The language of conditions and references: paths, literals, comparisons, and, or, not, in.

    results.check.rows > 0 and config["mode"] in ["full", "delta"]

There is no call, no arithmetic, no assignment: an expression can only look. It is parsed by hand
and never given to Python's own evaluator. Length and depth are bounded, so parsing is too.
"""

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NoReturn

from foliot.core.errors import InvalidExpression
from foliot.core.model import Json

LENGTH_MAX: Final = 2000
DEPTH_MAX: Final = 32
ROOTS: Final = ("results", "config", "item", "index")

_STRING: Final = r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'"""
_STEP: Final = rf"\.[\w-]+|\[(?:-?[0-9]+|{_STRING})\]"
_TOKEN: Final = re.compile(
    rf"""(?P<keyword>(?:and|or|not|in|true|false|null|True|False|None)\b)
    |(?P<path>[^\W\d]\w*(?:{_STEP})*)
    |(?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
    |(?P<string>{_STRING})
    |(?P<operator>==|!=|<=|>=|<|>)
    |(?P<mark>[()\[\],])""",
    re.VERBOSE | re.DOTALL,
)
_SPACE: Final = re.compile(r"\s*")
_STEPS: Final = re.compile(_STEP, re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "\\": "\\", '"': '"', "'": "'"}
_CONSTANTS: Final = {
    "true": True, "True": True, "false": False, "False": False, "null": None, "None": None
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Literal:
    value: Json


@dataclass(frozen=True, slots=True)
class Path:
    """`results.check.rows[0]`: the root, then the names and indexes that follow."""

    root: str
    steps: tuple[str | int, ...]
    text: str

    @property
    def task(self) -> str | None:
        """The task whose result this reads."""
        return str(self.steps[0]) if self.root == "results" else None


@dataclass(frozen=True, slots=True)
class ListOf:
    items: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Not:
    operand: "Expression"


@dataclass(frozen=True, slots=True)
class AllOf:
    operands: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    operands: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Compare:
    operator: str
    left: "Expression"
    right: "Expression"


Expression = Literal | Path | ListOf | Not | AllOf | AnyOf | Compare


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    position: int


@lru_cache(maxsize=1024)
def parse(text: str) -> Expression:
    """The meaning of `text`, or InvalidExpression with the position and the fix."""
    parser = _Parser(text)
    expression = parser.any_of()
    parser.expect_end()
    return expression


@lru_cache(maxsize=4096)
def parse_path(text: str) -> Path:
    """A path and nothing else: what `${…}` and `over` hold."""
    expression = parse(text)
    if not isinstance(expression, Path):
        _refuse(text, 0, "this is not a path", "name a value, as in results.extract.rows")
    return expression


def paths(expression: Expression) -> tuple[Path, ...]:
    """Every path the expression reads, from left to right."""
    match expression:
        case Path():
            return (expression,)
        case ListOf(items) | AllOf(items) | AnyOf(items):
            return tuple(path for item in items for path in paths(item))
        case Not(operand):
            return paths(operand)
        case Compare(_, left, right):
            return paths(left) + paths(right)
        case Literal():
            return ()


def _refuse(text: str, position: int, reason: str, hint: str) -> NoReturn:
    raise InvalidExpression(
        reason=f"{reason}, at position {position}", hint=hint, expression=text, position=position
    )


class _Parser:
    """Recursive descent, one method per level of precedence, weakest first."""

    def __init__(self, text: str) -> None:
        if len(text) > LENGTH_MAX:
            hint = f"keep it under {LENGTH_MAX} characters: compute in a task, compare here"
            _refuse(text[:80], LENGTH_MAX, "the expression is too long", hint)
        self.text = text
        self.tokens = _tokens(text)
        self.index = 0
        self.depth = 0

    def any_of(self) -> Expression:
        operands = [self.all_of()]
        while self.take("or"):
            operands.append(self.all_of())
        return operands[0] if len(operands) == 1 else AnyOf(tuple(operands))

    def all_of(self) -> Expression:
        operands = [self.negation()]
        while self.take("and"):
            operands.append(self.negation())
        return operands[0] if len(operands) == 1 else AllOf(tuple(operands))

    def negation(self) -> Expression:
        if not self.take("not"):
            return self.comparison()
        self.enter()
        operand = self.negation()
        self.depth -= 1
        return Not(operand)

    def comparison(self) -> Expression:
        left = self.operand()
        operator = self.comparison_operator()
        if operator is None:
            return left
        compared = Compare(operator, left, self.operand())
        position = self.peek().position
        if self.comparison_operator() is not None:
            hint = "write a < b and b < c"
            _refuse(self.text, position, "comparisons do not chain", hint)
        return compared

    def comparison_operator(self) -> str | None:
        token = self.peek()
        if token.kind == "operator" or token.text == "in":
            self.index += 1
            return token.text
        if token.text == "not" and self.tokens[self.index + 1].text == "in":
            self.index += 2
            return "not in"
        return None

    def operand(self) -> Expression:
        token = self.peek()
        self.index += 1
        match token.kind:
            case "number":
                return Literal(_number(self.text, token))
            case "string":
                return Literal(_unquoted(self.text, token.text, token.position))
            case "path":
                return _path(self.text, token)
            case "keyword" if token.text in _CONSTANTS:
                return Literal(_CONSTANTS[token.text])
            case "mark" if token.text == "(":
                return self.parenthesis()
            case "mark" if token.text == "[":
                return self.list_of()
        found = f"found {token.text!r}" if token.text else "the expression ends"
        hint = "write a path, a number, a quoted text, true, false, null, a list or (…)"
        _refuse(self.text, token.position, f"{found} where a value is due", hint)

    def parenthesis(self) -> Expression:
        self.enter()
        inner = self.any_of()
        self.depth -= 1
        if not self.take(")"):
            _refuse(self.text, self.peek().position, "a parenthesis stays open", "add )")
        return inner

    def list_of(self) -> Expression:
        self.enter()
        items: list[Expression] = []
        while not self.take("]"):
            if items and not self.take(","):
                _refuse(self.text, self.peek().position, "a list stays open", "add , or ]")
            items.append(self.operand())
        self.depth -= 1
        return ListOf(tuple(items))

    def enter(self) -> None:
        self.depth += 1
        if self.depth > DEPTH_MAX:
            position = self.peek().position
            hint = f"use at most {DEPTH_MAX} levels of (, [ and not"
            _refuse(self.text, position, "the expression is nested too deeply", hint)

    def peek(self) -> _Token:
        return self.tokens[self.index]

    def take(self, text: str) -> bool:
        taken = self.peek().text == text
        self.index += taken
        return taken

    def expect_end(self) -> None:
        token = self.peek()
        if token.kind != "end":
            hint = "join two comparisons with and, or"
            _refuse(self.text, token.position, f"{token.text!r} is not expected here", hint)


def _tokens(text: str) -> list[_Token]:
    """The tokens, and an empty one at the end so that looking ahead never runs out."""
    found: list[_Token] = []
    position = _skip_space(text, 0)
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            hint = "allowed are paths, literals, == != < <= > >=, in, and, or, not, ( ) and [ ]"
            if text[position] == "=":
                hint = "compare with =="
            elif text[position] in "'\"":
                hint = "close the quote"
            _refuse(text, position, f"{text[position]!r} means nothing here", hint)
        found.append(_Token(str(match.lastgroup), match.group(), position))
        position = _skip_space(text, match.end())
    end = _Token("end", "", len(text))
    return [*found, end, end]


def _skip_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _number(text: str, token: _Token) -> int | float:
    if token.text.lstrip("-").isdecimal():
        return int(token.text)
    value = float(token.text)
    if not math.isfinite(value):
        _refuse(text, token.position, "the number is too large", "stay below 1.8e308")
    return value


def _unquoted(text: str, quoted: str, position: int) -> str:
    def replaced(match: re.Match[str]) -> str:
        if match[1] not in _ESCAPES:
            hint = r"use \n, \t, \\, \" or \'"
            _refuse(text, position, f"unknown escape {match[0]}", hint)
        return _ESCAPES[match[1]]

    return _ESCAPE.sub(replaced, quoted[1:-1])


def _path(text: str, token: _Token) -> Path:
    root = re.split(r"[.\[]", token.text, maxsplit=1)[0]
    if root not in ROOTS:
        hint = "begin with results.<task> or config; put text in quotes"
        _refuse(text, token.position, f"{root!r} is not known", hint)
    steps = tuple(
        _step(text, step, token.position) for step in _STEPS.findall(token.text, len(root))
    )
    if root == "results" and (not steps or isinstance(steps[0], int)):
        hint = "write results.<task>, or results['<task>'] for a name with a dot"
        _refuse(text, token.position, "results needs the name of a task", hint)
    return Path(root, steps, token.text)


def _step(text: str, step: str, position: int) -> str | int:
    if step[0] == ".":
        return step[1:]
    inner = step[1:-1]
    return _unquoted(text, inner, position) if inner[0] in "'\"" else int(inner)
