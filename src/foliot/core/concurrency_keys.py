"""Concurrency keys: literal text, `${payload.x.y}`, or both mixed.

A key is resolved once, when its execution comes into being, and kept on the row. Keys belong to
their tenant: two tenants with the same text never meet.
"""

import json
import re
from functools import lru_cache
from typing import Final

from foliot.core.errors import InvalidInput, UnresolvedKey
from foliot.core.model import Json

KEY_LENGTH_MAX: Final = 200
TEMPLATE_LENGTH_MAX: Final = 500
_PLACEHOLDER: Final = re.compile(r"\$\{([^{}]*)\}")
_PATH: Final = re.compile(r"payload(?:\.[A-Za-z0-9_-]+)*")
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")


def check_key_template(template: str) -> None:
    """Refuse a key that no payload could fill, when the job is saved."""
    _parse(template)


def resolve_key(template: str, payload: Json) -> str:
    """The key that `template` means for `payload`."""
    literals, paths = _parse(template)
    parts = [literals[0]]
    for path, literal in zip(paths, literals[1:], strict=True):
        parts += [_text_at(payload, path), literal]
    key = "".join(parts)
    if not 0 < len(key) <= KEY_LENGTH_MAX:
        raise UnresolvedKey(
            f"the key comes out with {len(key)} characters",
            path=template,
            hint=f"1 to {KEY_LENGTH_MAX} are allowed",
        )
    return key


@lru_cache(maxsize=4096)
def _parse(template: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The literal parts and the paths between them: one literal more than paths."""
    if not 0 < len(template) <= TEMPLATE_LENGTH_MAX:
        raise _bad_template(
            f"it has {len(template)} characters", f"1 to {TEMPLATE_LENGTH_MAX} are allowed"
        )
    if _UNSTORABLE.search(template):
        raise _bad_template("it holds a character that cannot be stored", "use plain text")
    pieces = _PLACEHOLDER.split(template)
    literals, paths = tuple(pieces[0::2]), tuple(pieces[1::2])
    if any("${" in literal for literal in literals):
        raise _bad_template("a '${' is never closed", "write ${payload.name}")
    for path in paths:
        if not _PATH.fullmatch(path):
            raise _bad_template(
                f"'${{{path}}}' is not a path into the payload", "write ${payload.name}"
            )
    if not paths and len(template) > KEY_LENGTH_MAX:
        raise _bad_template(
            f"it has {len(template)} characters", f"a key has at most {KEY_LENGTH_MAX}"
        )
    return literals, paths


def _text_at(payload: Json, path: str) -> str:
    value = payload
    for name in path.split(".")[1:]:
        value = _member(value, name, path)
    if isinstance(value, str):
        if _UNSTORABLE.search(value):
            raise _unresolved(path, "holds a character that cannot be stored")
        return value
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    kind = "null" if value is None else "an object" if isinstance(value, dict) else "a list"
    raise _unresolved(path, f"is {kind}")


def _member(value: Json, name: str, path: str) -> Json:
    if isinstance(value, dict) and name in value:
        return value[name]
    if isinstance(value, list) and name.isdigit() and len(name) < 10 and int(name) < len(value):
        return value[int(name)]
    raise _unresolved(path, "is missing")


def _unresolved(path: str, what: str) -> UnresolvedKey:
    return UnresolvedKey(
        f"{path} {what}",
        path=path,
        hint="give it text, a number or a boolean, or change the key",
    )


def _bad_template(reason: str, hint: str) -> InvalidInput:
    return InvalidInput(reason, field="concurrency.key", hint=hint)
