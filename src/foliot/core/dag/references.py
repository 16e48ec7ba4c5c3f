"""Results and config as inputs: `${results.extract.rows}` and `${config.day}` inside a payload.

A reference that is the whole text takes the value with its type; one inside a text is written into
it (texts as they are, all else as JSON). `$${` is a literal `${`. `${secrets.NAME}` is left for the
worker, so an inserted value that holds one is refused: data must not be able to ask for a secret.
Inserted values are never searched for references again.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

from foliot.core.dag.conditions import Scope, look_up
from foliot.core.dag.expressions import Path, parse_path
from foliot.core.errors import ExpressionFailed, InvalidExpression, InvalidInput
from foliot.core.model import Json

DEPTH_MAX: Final = 64
_SECRET: Final = "secrets."  # noqa: S105  the prefix of a reference, not a secret
_SECRET_REFERENCE: Final = "${" + _SECRET
_SMUGGLED: Final = "a value that is inserted holds a reference to a secret"
_REFERENCE: Final = re.compile(r"\$\$\{(?!secrets\.)|\$\{(?P<path>[^{}]*)\}|(?P<open>\$\{)")


def find_references(payload: Json, field: str) -> Iterator[tuple[str, Path]]:
    """Every reference with the field it stands in; InvalidExpression where one does not parse."""
    waiting: list[tuple[str, Json, int]] = [(field, payload, 0)]
    while waiting:
        where, value, depth = waiting.pop()
        if depth > DEPTH_MAX:
            hint = f"use at most {DEPTH_MAX} levels"
            raise InvalidInput("the payload is nested too deeply", field=field, hint=hint)
        if isinstance(value, str):
            yield from ((where, path) for path in _references_in(value, where))
        elif isinstance(value, Mapping):
            waiting.extend((f"{where}.{key}", inner, depth + 1) for key, inner in value.items())
        elif isinstance(value, (list, tuple)):
            waiting.extend((f"{where}[{i}]", inner, depth + 1) for i, inner in enumerate(value))


def render(payload: Json, scope: Scope) -> Json:
    """The payload with its references replaced; ExpressionFailed if a value is not there."""
    if isinstance(payload, str):
        return _render_text(payload, scope)
    if isinstance(payload, Mapping):
        return {key: render(value, scope) for key, value in payload.items()}
    if isinstance(payload, (list, tuple)):
        return [render(value, scope) for value in payload]
    return payload


def _references_in(text: str, field: str) -> Iterator[Path]:
    for match in _REFERENCE.finditer(text):
        if match["open"]:
            raise InvalidExpression(
                reason=f"a reference is not closed, at position {match.start()}",
                field=field,
                hint="add }, or write $${ for a literal ${",
                expression=text,
                position=match.start(),
            )
        if match["path"] is None or match["path"].startswith(_SECRET):
            continue
        try:
            yield parse_path(match["path"])
        except InvalidExpression as error:
            raise InvalidExpression(
                reason=error.reason,
                field=field,
                hint=f"{error.hint}; $${{ is a literal ${{",
                expression=error.expression,
                position=error.position,
            ) from None


def _render_text(text: str, scope: Scope) -> Json:
    whole = _REFERENCE.fullmatch(text)
    if whole and whole["path"] is not None and not whole["path"].startswith(_SECRET):
        path = parse_path(whole["path"])
        value = look_up(path, scope)
        _refuse_secrets(value, path.text)
        return value
    rendered = _REFERENCE.sub(lambda match: _replacement(match, scope), text)
    # Counted on the outcome: two harmless values side by side could spell a reference together.
    if rendered.count(_SECRET_REFERENCE) > text.count(_SECRET_REFERENCE):
        raise ExpressionFailed(_SMUGGLED, text)
    return rendered


def _replacement(match: re.Match[str], scope: Scope) -> str:
    if match["open"]:
        raise ExpressionFailed("a reference is not closed", match.string)
    if match["path"] is None:
        return "${"
    if match["path"].startswith(_SECRET):
        return match[0]
    value = look_up(parse_path(match["path"]), scope)
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _refuse_secrets(value: Json, expression: str) -> None:
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, str) and _SECRET_REFERENCE in inner:
            raise ExpressionFailed(_SMUGGLED, expression)
        if isinstance(inner, Mapping):
            waiting.extend(inner.keys())
            waiting.extend(inner.values())
        elif isinstance(inner, (list, tuple)):
            waiting.extend(inner)
