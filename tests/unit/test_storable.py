"""What can be kept, what is refused with its place named, and what a marker stands for."""

import json
from collections import OrderedDict, UserString, defaultdict
from datetime import UTC, datetime
from enum import IntEnum, StrEnum
from typing import Any

import pytest

from foliot.core.errors import InvalidInput
from foliot.core.storable import (
    DEPTH_MAX,
    MARKER_BYTES_MAX,
    Storable,
    check_storable,
    clean_text,
    to_storable,
)

ROOM = 100_000


class Number(IntEnum):
    ONE = 1


class Word(StrEnum):
    YES = "yes"


class Twin(str):
    """A key that is unlike itself."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return False


class Liar(dict[str, Any]):
    """Claims to be short and empty, and fails when asked."""

    def __len__(self) -> int:
        return 0

    def items(self) -> Any:  # noqa: ANN401 - a lie
        raise RuntimeError


class Faceless:
    @property  # type: ignore[misc]  # a class that hides is the point
    def __class__(self) -> Any:  # noqa: ANN401 - raises
        raise RuntimeError

    def __repr__(self) -> str:
        raise RuntimeError


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (0, "0"),
        (-(2**63), "-9223372036854775808"),
        (2**63 - 1, "9223372036854775807"),
        (1.5, "1.5"),
        (1e300, "1e+300"),
        ("", '""'),
        ('a"\\\n\x01é😀', '"a\\"\\\\\\n\\u0001é😀"'),
        ("\\u0000", '"\\\\u0000"'),
        ([], "[]"),
        ((1, [2]), "[1,[2]]"),
        ({"a": {"b": None}, "": 1}, '{"a":{"b":null},"":1}'),
        (Number.ONE, "1"),
        (Word.YES, '"yes"'),
        (OrderedDict(a=1), '{"a":1}'),
        (defaultdict(list, {"a": [1]}), '{"a":[1]}'),
        (Liar(a=1), '{"a":1}'),
    ],
)
def test_json_is_written_as_it_is(value: object, text: str) -> None:
    assert check_storable(value, "payload", ROOM) == text
    assert to_storable(value, ROOM) == Storable(text, False)


@pytest.mark.parametrize(
    ("value", "place", "reason"),
    [
        ("a\0b", "payload", "NUL"),
        ({"a": [1, {"b": "\0"}]}, "payload.a[1].b", "NUL"),
        ({"a": {"x\0y": 1}}, "payload.a", "a key has a NUL"),
        (["\ud800"], "payload[0]", "surrogate"),
        ({"\udfff": 1}, "payload", "a key has half of a surrogate pair"),
        (float("nan"), "payload", "nan is not JSON"),
        ({"x": float("-inf")}, "payload.x", "-inf is not JSON"),
        (2**63, "payload", "64 bits"),
        (-(2**63) - 1, "payload", "64 bits"),
        ([10**5000], "payload[0]", "64 bits"),
        ({1: 2}, "payload", "not text"),
        ({"k": {None: 2}}, "payload.k", "not text"),
        ({Twin("a"): 1, Twin("b"): 1, Twin("a"): 2}, "payload", "twice"),
        (b"x", "payload", "bytes is not JSON"),
        ([datetime(2027, 1, 1, tzinfo=UTC)], "payload[0]", "datetime is not JSON"),
        ({1, 2}, "payload", "set is not JSON"),
        (1j, "payload", "complex is not JSON"),
        (UserString("x"), "payload", "UserString is not JSON"),
        ([Faceless()], "payload[0]", "Faceless is not JSON"),
        (nested(DEPTH_MAX + 1), "payload" + "[0]" * DEPTH_MAX, "deeper than 32"),
        ("x" * ROOM, "payload", f"larger than {ROOM} bytes"),
        ({"a": ["x" * 60_000, "x" * 60_000]}, "payload.a[1]", "larger than"),
    ],
)
def test_what_cannot_be_kept_is_refused_by_its_place(
    value: object, place: str, reason: str
) -> None:
    with pytest.raises(InvalidInput) as refusal:
        check_storable(value, "payload", ROOM)
    assert refusal.value.field == place
    assert reason in refusal.value.reason
    assert refusal.value.hint
    kept = to_storable(value, ROOM)
    assert kept.truncated
    marker = json.loads(kept.text)
    assert marker["foliot"] == ("truncated" if "larger" in reason else "unstorable")
    assert reason in marker["reason"]
    assert marker.get("path", "") == place.removeprefix("payload")[:80]


def test_as_deep_as_allowed_is_kept() -> None:
    assert json.loads(check_storable(nested(DEPTH_MAX), "payload", ROOM)) == nested(DEPTH_MAX)


def test_a_value_that_contains_itself_ends() -> None:
    loop: list[object] = []
    loop.append(loop)
    assert "deeper" in to_storable(loop, ROOM).text


def test_a_small_value_that_writes_out_large_ends_at_the_limit() -> None:
    """Ten lists of ten lists of …: a few hundred bytes in memory, 10^20 values when written."""
    value: list[object] = []
    for _ in range(20):
        value = [value] * 10
    assert "larger than" in to_storable(value, ROOM).text


@pytest.mark.parametrize("text", ["x" * 94, "é" * 47, "😀" * 23, "\n" * 47, "\x01" * 15])
def test_the_limit_counts_bytes_as_they_are_written(text: str) -> None:
    size = len(json.dumps(text, ensure_ascii=False).encode())
    assert size <= 100
    check_storable(text, "payload", size)
    with pytest.raises(InvalidInput, match="larger"):
        check_storable(text, "payload", size - 1)


def test_a_float_counts_as_the_database_writes_it() -> None:
    check_storable([1e-300], "payload", 400)
    with pytest.raises(InvalidInput, match="larger"):
        check_storable([1e-300], "payload", 300)


def test_a_gigabyte_is_not_copied() -> None:
    class Huge(str):
        """A string whose every copy would be noticed."""

        __slots__ = ()

        def __str__(self) -> str:
            raise AssertionError

        def encode(self, *_: object) -> bytes:
            raise AssertionError

    kept = to_storable({"log": Huge("x" * 50_000_000)}, ROOM)
    assert len(kept.text) < 2000
    assert json.loads(kept.text)["preview"].startswith('{"log":"xxx')


def test_a_truncated_value_shows_its_beginning() -> None:
    marker = json.loads(to_storable({"rows": list(range(50_000))}, ROOM).text)
    assert marker["preview"].startswith('{"rows":[0,1,2,3')
    assert marker["path"].startswith(".rows")


def test_a_marker_fits_where_little_is_allowed() -> None:
    key = "😀" * 500
    for value in ({key: {key: "\0"}}, [key] * 10, {key: "x" * 5000}):
        for room in (1, 100, 2000, 3000):
            kept = to_storable(value, room)
            assert len(kept.text.encode()) <= max(room, MARKER_BYTES_MAX)


def test_a_class_that_hides_its_name_is_named_all_the_same() -> None:
    class Hiding(type):
        def __getattribute__(cls, name: str) -> Any:  # noqa: ANN401 - raises
            raise RuntimeError

    class Hidden(metaclass=Hiding):
        pass

    assert "Hidden is not JSON" in to_storable(Hidden(), ROOM).text


def test_a_value_that_cannot_even_be_read_becomes_a_marker(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(_: float) -> bool:
        raise MemoryError

    monkeypatch.setattr("foliot.core.storable.isfinite", no_memory)
    assert to_storable([1.5], ROOM) == Storable(
        '{"foliot":"unstorable","reason":"it cannot be read"}', True
    )


@pytest.mark.parametrize(
    ("text", "clean"),
    [("plain é😀", "plain é😀"), ("a\0b", "a\ufffdb"), ("\ud800x", "\ufffd\ufffd\ufffdx")],
)
def test_text_is_cleaned_where_the_rest_of_it_matters(text: str, clean: str) -> None:
    assert clean_text(text, 100) == clean
    assert clean_text(text, 3) == clean_text(text[:3], 3)
