"""References to secrets: `${secrets.NAME}` in a target's url, headers, arguments and environment,
and in any text inside a payload.

A definition is checked for its form alone: a secret may be written later. Values are put in once,
by the worker: what a value holds is never searched again. `$${secrets.NAME}` is the text
`${secrets.NAME}`. Names of fields and of headers are not searched.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from foliot.core.errors import InvalidInput, PayloadTooLarge
from foliot.core.model import CommandTarget, HandlerTarget, HttpTarget, Job, Json, Target

NAME_CHARS_MAX: Final = 128
NAMES_MAX: Final = 100
# What all values together may add to one attempt's target and payload, and may have to be masked.
ADDED_CHARS_MAX: Final = 256 * 1024
_NAME: Final = rf"[A-Z_][A-Z0-9_]{{0,{NAME_CHARS_MAX - 1}}}"
_WHOLE_NAME: Final = re.compile(_NAME)
_MARK: Final = "${secrets."
_REFERENCE: Final = re.compile(rf"(?P<escape>\$?)\$\{{secrets\.(?P<name>{_NAME})\}}")
# What is probably meant for one.
_ALIKE: Final = re.compile(r"\$?\$\{\s*secrets?\b", re.IGNORECASE)
_HINT: Final = "write ${secrets.NAME}, in capitals; $${secrets.NAME} is the text itself"


def is_name(text: str) -> bool:
    return _WHOLE_NAME.fullmatch(text) is not None


def check_name(name: str, field: str = "name") -> None:
    """The refusal does not repeat the name: it may be a value in the wrong place."""
    if not is_name(name):
        raise InvalidInput(
            "is not a name of a secret",
            field=field,
            hint=f"use capitals, digits and _, no digit first, at most {NAME_CHARS_MAX}",
        )


def check_references(value: Json, field: str) -> None:
    """Refuse what looks like a reference and is none, naming the place."""
    for where, text, is_name in _texts(value, field):
        _check_text(text, where)
        if is_name and any(True for _ in _names(text)):
            raise InvalidInput(
                "a name cannot hold a reference to a secret", field=where, hint="put it in a value"
            )


def check_job(job: Job) -> None:
    """Everything in a definition that may hold a reference."""
    _check_target(job.target)
    check_references(job.payload, "payload")
    if job.callback_url is not None:
        check_address(job.callback_url, "callback_url")


def _check_target(target: Target) -> None:
    match target:
        case HttpTarget(url, _, headers):
            check_address(url, "target.url")
            for name, value in headers.items():
                check_address(value, f"target.headers.{name}")
        case CommandTarget(argv, env):
            check_references(argv, "target.argv")
            check_references(env, "target.env")
        case HandlerTarget():
            pass


def check_address(text: str, field: str) -> None:
    """In a url or a header, nothing else than a reference begins with `${`."""
    _check_text(text, field)
    if "${" in _REFERENCE.sub("", text):
        raise InvalidInput(
            "holds ${ that begins no reference to a secret",
            field=field,
            hint="only ${secrets.NAME} is filled in here",
        )


def is_any_in(*values: Json) -> bool:
    """Whether there is a reference, or the text of one, that `substitute` would change."""
    return any(map(_is_any_in, values))


def names_in(*values: Json) -> frozenset[str]:
    """The secrets that these ask for."""
    return frozenset(
        name for value in values for text in _values_of(value) for name in _names(text)
    )


def check_growth(values: Mapping[str, str], *places: Json) -> None:
    """Refuse references that would make more of a payload than could be handled."""
    check_added(
        len(values[name]) for place in places for text in _values_of(place) for name in _names(text)
    )


def check_added(lengths: Iterable[int]) -> None:
    added = sum(lengths)
    if added > ADDED_CHARS_MAX:
        raise PayloadTooLarge(
            f"the secrets in it would add {added} characters",
            field="payload",
            hint=f"up to {ADDED_CHARS_MAX} are allowed: ask for each once",
        )


def substitute(value: Json, values: Mapping[str, str]) -> Json:
    """`value` with every reference replaced; `values` has all that `names_in` found."""
    if isinstance(value, str):
        return substitute_text(value, values)
    if isinstance(value, dict):
        return {key: substitute(inner, values) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [substitute(inner, values) for inner in value]
    return value


def substitute_text(text: str, values: Mapping[str, str]) -> str:
    if _MARK not in text:
        return text
    return _REFERENCE.sub(
        lambda found: found[0][1:] if found["escape"] else values[found["name"]], text
    )


def substitute_http(target: HttpTarget, values: Mapping[str, str]) -> HttpTarget:
    url, headers = substitute_text(target.url, values), substitute(target.headers, values)
    return replace(target, url=url, headers=headers)


def substitute_command(target: CommandTarget, values: Mapping[str, str]) -> CommandTarget:
    argv, env = tuple(substitute(target.argv, values)), substitute(target.env, values)
    return replace(target, argv=argv, env=env)


def _is_any_in(value: Json) -> bool:
    """Asked for each attempt, of which few have a reference: so in the plainest way."""
    if isinstance(value, str):
        return _MARK in value
    if isinstance(value, dict):
        return any(map(_is_any_in, value.values()))
    return isinstance(value, list | tuple) and any(map(_is_any_in, value))


def _check_text(text: str, field: str) -> None:
    for alike in _ALIKE.finditer(text):
        if alike[0].startswith("$$") or _REFERENCE.match(text, alike.start()):
            continue
        raise InvalidInput(
            f"what begins at character {alike.start()} is not a reference to a secret",
            field=field,
            hint=_HINT,
        )


def _names(text: str) -> Iterator[str]:
    if _MARK in text:
        for found in _REFERENCE.finditer(text):
            if not found["escape"]:
                yield found["name"]


def _values_of(value: Json) -> Iterator[str]:
    """Every text in `value`, without a place: this is asked for each attempt."""
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, str):
            yield inner
        elif isinstance(inner, dict):
            waiting.extend(inner.values())
        elif isinstance(inner, list | tuple):
            waiting.extend(inner)


def _texts(value: Json, field: str) -> Iterator[tuple[str, str, bool]]:
    """Every text in `value` with its place, and whether it is the name of a field."""
    waiting: list[tuple[str, Json]] = [(field, value)]
    while waiting:
        where, inner = waiting.pop()
        if isinstance(inner, str):
            yield where, inner, False
        elif isinstance(inner, dict):
            yield from ((where, key, True) for key in inner)
            waiting.extend((f"{where}.{key[:80]}", each) for key, each in inner.items())
        elif isinstance(inner, list | tuple):
            waiting.extend((f"{where}[{n}]", each) for n, each in enumerate(inner))
