"""What all request bodies and queries have in common.

A name that nobody knows is refused, with the one that was probably meant. Words are taken in any
case. Null is the same as nothing, except where any value is meant.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from difflib import get_close_matches
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from foliot.core.errors import InvalidInput
from foliot.core.priorities import parse_priority
from foliot.core.schedule.check import YEARS
from foliot.core.storable import clean_text

_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
_NAME_CHARS_MAX: Final = 100


class Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)

    # Names that are not fields and still may be meant.
    known_besides: ClassVar[frozenset[str]] = frozenset()
    # Names that are there when the thing is read.
    set_by_us: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="before")
    @classmethod
    def _check_names(cls, given: object) -> object:
        if not isinstance(given, dict):
            return given
        fields = {field.alias or name: field for name, field in cls.model_fields.items()}
        for name in given:
            if name in cls.set_by_us:
                raise PydanticCustomError(
                    "set_by_us", "is set by Foliot", {"name": name, "hint": "leave it out"}
                )
            if name not in fields:
                raise unknown_field(str(name), {*fields, *cls.known_besides})
        return {
            name: value
            for name, value in given.items()
            if value is not None or fields[name].annotation is Any
        }


def unknown_field(name: str, known: Iterable[str]) -> PydanticCustomError:
    names = sorted(known)
    shown = clean_text(name, _NAME_CHARS_MAX)  # half of a surrogate pair cannot be told
    close = get_close_matches(shown, names, n=1)
    hint = f"did you mean {close[0]}?" if close else _listed("known are", names)
    return PydanticCustomError(
        "unknown_field", "there is no such field", {"name": shown, "hint": hint}
    )


def _listed(words: str, names: Iterable[str]) -> str:
    return f"{words} {', '.join(names)}"


def word_of(kind: type[StrEnum]) -> BeforeValidator:
    """A word of `kind`, in any case."""

    def read(value: object) -> object:
        for word in kind:
            if isinstance(value, str) and value.lower() == word.lower():
                return word
        shown = str(value)[:40]
        close = get_close_matches(shown.upper(), [word.upper() for word in kind], n=1)
        hint = f"did you mean {close[0]}?" if close else _listed("use", kind)
        raise PydanticCustomError(
            "unknown_word", "{shown} is not one of the words", {"shown": repr(shown), "hint": hint}
        )

    return BeforeValidator(read)


def _time(value: object) -> object:
    if isinstance(value, datetime):
        return value
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else _not_a_time()
    except (ValueError, OverflowError):
        return _not_a_time()


def _not_a_time() -> object:
    raise PydanticCustomError(
        "not_a_time", "is not a time", {"hint": "write it like 2027-01-01T09:00:00Z"}
    )


def _in_utc(value: datetime) -> datetime:
    try:
        return value if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError:
        _not_a_time()
        raise


def taken_as_utc(value: datetime) -> datetime:
    """A time that does not say where it is told."""
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value


def _in_reach(value: datetime) -> datetime:
    if value.year not in YEARS:
        raise PydanticCustomError(
            "out_of_reach",
            "lies in the year {year}",
            {"year": value.year, "hint": f"use a time from {YEARS.start} to {YEARS.stop - 1}"},
        )
    return value


def is_storable_text(value: str) -> bool:
    return _UNSTORABLE.search(value) is None


def _storable(value: str) -> str:
    if not is_storable_text(value):
        raise PydanticCustomError(
            "not_text", "has a character that cannot be kept", {"hint": "use plain text"}
        )
    return value


def _priority(value: object) -> int:
    try:
        return parse_priority(value)
    except InvalidInput as refused:
        raise PydanticCustomError(
            "not_a_priority", "{reason}", {"reason": refused.reason, "hint": refused.hint}
        ) from None


Text = Annotated[str, AfterValidator(_storable)]
Word = Annotated[Text, Field(min_length=1, max_length=200)]
# What it says is looked at where the job is put together: what may be called is the operator's.
Address = Annotated[Text, Field(max_length=4000)]
Time = Annotated[datetime, BeforeValidator(_time), AfterValidator(_in_utc)]
UtcTime = Annotated[Time, AfterValidator(taken_as_utc)]
# What is counted from, either way: at the ends of the calendar there would be no time left for it.
TimeInReach = Annotated[UtcTime, AfterValidator(_in_reach)]
Priority = Annotated[int, BeforeValidator(_priority)]
Labels = Annotated[dict[Word, Annotated[Text, Field(max_length=1000)]], Field(max_length=64)]
