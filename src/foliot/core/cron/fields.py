"""One field of a cron expression: text in, a set of values out.

A set is a bit mask (bit n is set if n belongs to it): its next member, its last one and their
number are then a shift away. `H` draws its value from a hash of the seed and the field's name:
one job keeps its minute for ever while a thousand jobs spread over the hour.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from foliot.core.errors import InvalidCron

_LONGEST_LIST: Final = 64


@dataclass(frozen=True, slots=True)
class Field:
    """What a field is called and which values it takes."""

    name: str
    low: int
    high: int
    names: Mapping[str, int]
    highest_hash: int  # the highest value that a bare H draws
    wraps: bool = False  # weekdays are a circle: FRI-MON is four days, and 7 another name for 0

    @property
    def size(self) -> int:
        return self.high - self.low + 1

    @property
    def bounds(self) -> str:
        also = f", or {next(iter(self.names))} to {list(self.names)[-1]}" if self.names else ""
        return f"{self.name} goes from {self.low} to {self.high + self.wraps}{also}"


_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
_WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]

SECOND: Final = Field("second", 0, 59, {}, 59)
MINUTE: Final = Field("minute", 0, 59, {}, 59)
HOUR: Final = Field("hour", 0, 23, {}, 23)
# A day that H draws exists in every month.
DAY_OF_MONTH: Final = Field("day of month", 1, 31, {}, 28)
MONTH: Final = Field("month", 1, 12, {name: n for n, name in enumerate(_MONTHS, 1)}, 12)
DAY_OF_WEEK: Final = Field(
    "day of week", 0, 6, {name: n for n, name in enumerate(_WEEKDAYS)}, 6, wraps=True
)

_ITEM: Final = re.compile(
    r"(?P<any>\*)|(?P<hash>H)(?:\((?P<from>\w+)-(?P<to>\w+)\))?|(?P<low>\w+)(?:-(?P<high>\w+))?"
)
_NUMBER: Final = re.compile(r"[0-9]{1,4}")


def members(mask: int) -> tuple[int, ...]:
    """The values in a set, in order."""
    return tuple(n for n in range(mask.bit_length()) if mask >> n & 1)


def split_items(field: Field, text: str) -> list[str]:
    """The items of a comma list, none of them empty, not too many."""
    items = text.split(",")
    if len(items) > _LONGEST_LIST:
        raise InvalidCron(
            reason=f"{field.name} lists {len(items)} items",
            hint=f"a list takes at most {_LONGEST_LIST}; use a range or a step",
        )
    if "" in items:
        raise InvalidCron(
            reason=f"{field.name} {text!r} has an empty item",
            hint="write values on both sides of each comma",
        )
    return items


def read_field(field: Field, text: str, seed: str) -> int:
    """The set of a whole field."""
    mask = 0
    for item in split_items(field, text):
        mask |= read_item(field, item, seed)
    return mask


def read_item(field: Field, item: str, seed: str) -> int:
    """The set of one item: `*`, a value, a range or H, each perhaps with a step."""
    base, slash, step_text = item.partition("/")
    match = _ITEM.fullmatch(base)
    if match is None:
        raise not_understood(field, item)
    step = _read_step(field, item, step_text) if slash else None
    if match["hash"]:
        chosen = _hashed(_hash_range(field, match, item), step, seed, field)
    elif match["any"]:
        chosen = range(field.low, field.high + 1)[::step]
    elif match["high"] is not None:
        chosen = _run(field, match["low"], match["high"], item)[::step]
    else:
        low = read_value(field, match["low"])
        first = low % 7 if field.wraps else low
        chosen = range(first, field.high + 1)[::step] if step else range(first, first + 1)
    return _mask(chosen)


def read_value(field: Field, text: str) -> int:
    """A number or a name. A weekday may be 7 here, so that 5-7 is a range."""
    if text in field.names:
        return field.names[text]
    if not _NUMBER.fullmatch(text):
        raise not_understood(field, text)
    value = int(text)
    if not field.low <= value <= field.high + field.wraps:
        raise InvalidCron(reason=f"{field.name} {value} is out of range", hint=field.bounds)
    return value


def not_understood(field: Field, text: str) -> InvalidCron:
    return InvalidCron(reason=f"{field.name} {text!r} is not understood", hint=field.bounds)


def _run(field: Field, low_text: str, high_text: str, item: str) -> Sequence[int]:
    """The values from low to high, both included; weekdays may run over the week's end."""
    low, high = read_value(field, low_text), read_value(field, high_text)
    if low <= high:
        values = range(low, high + 1)
    elif field.wraps:
        values = range(low, high + 8)
    else:
        raise InvalidCron(
            reason=f"{field.name} range {item!r} runs backwards",
            hint=f"write two ranges, {low_text}-{field.high},{field.low}-{high_text}",
        )
    return [value % 7 for value in values] if field.wraps else values


def _hash_range(field: Field, match: re.Match[str], item: str) -> Sequence[int]:
    if match["from"] is None:
        return range(field.low, field.highest_hash + 1)
    return _run(field, match["from"], match["to"], item)


def _hashed(values: Sequence[int], step: int | None, seed: str, field: Field) -> Sequence[int]:
    """Without a step one of the values; with one, every n-th, from one of the first n on."""
    draw = int.from_bytes(sha256(f"{field.name}:{seed}".encode()).digest()[:8], "big")
    if step is None:
        chosen = draw % len(values)
        return values[chosen : chosen + 1]
    return values[draw % min(step, len(values)) :: step]


def _read_step(field: Field, item: str, text: str) -> int:
    if not _NUMBER.fullmatch(text) or not 1 <= int(text) <= field.size:
        raise InvalidCron(
            reason=f"{field.name} {item!r} has no usable step",
            hint=f"a step in {field.name} is a number from 1 to {field.size}",
        )
    return int(text)


def _mask(values: Sequence[int]) -> int:
    mask = 0
    for value in values:
        mask |= 1 << value
    return mask
