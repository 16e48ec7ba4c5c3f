"""Hints on their way: several are gathered into one, which is one line of text.

About each matter a message has names, or none for everything of it; what would not fit into a
message any more loses its names. What another version says and is not understood here is passed
over.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Final

from foliot.transport.port import Matter

Hints = Mapping[Matter, frozenset[str]]

EVERYTHING: Final[frozenset[str]] = frozenset()
NAMES_MAX: Final = 100
# PostgreSQL takes 7,999 bytes.
BYTES_MAX: Final = 7_900


class Bundle:
    """What waits to be sent."""

    def __init__(self) -> None:
        self._hints: dict[Matter, frozenset[str]] = {}

    def __bool__(self) -> bool:
        return bool(self._hints)

    def add(self, matter: Matter, names: Iterable[str]) -> None:
        told = frozenset(names)
        self._hints[matter] = _joined(self._hints.get(matter, told), told)

    def take(self) -> Hints:
        taken, self._hints = self._hints, {}
        return taken


def _joined(one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    if not one or not other or len(one | other) > NAMES_MAX:
        return EVERYTHING
    return one | other


def encode(hints: Hints) -> str:
    """Names are left out, those of the longest list first, until it fits."""
    left = dict(hints)
    while len((text := _text(left)).encode()) > BYTES_MAX:
        longest = max(left, key=lambda matter: sum(map(len, left[matter])))
        left[longest] = EVERYTHING
    return text


def _text(hints: Hints) -> str:
    return json.dumps(
        {matter.value: sorted(names) for matter, names in hints.items()}, separators=(",", ":")
    )


def decode(text: str) -> Hints:
    """What of it is understood."""
    try:
        told = json.loads(text)
    except ValueError:
        return {}
    if not isinstance(told, dict):
        return {}
    known = set(Matter)
    return {
        Matter(matter): frozenset(name for name in names if isinstance(name, str))
        for matter, names in told.items()
        if matter in known and isinstance(names, list)
    }
