"""Any Python object becomes JSON text; what is JSON becomes exactly itself."""

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.core.errors import InvalidInput
from foliot.core.storable import (
    INTEGER_MAX,
    INTEGER_MIN,
    MARKER_BYTES_MAX,
    check_storable,
    to_storable,
)

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(INTEGER_MIN, INTEGER_MAX)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=30,
)
anything = st.recursive(
    st.none()
    | st.integers()
    | st.floats()
    | st.complex_numbers()
    | st.binary()
    | st.text(st.characters(exclude_categories=()))
    | st.dates()
    | st.uuids()
    | st.builds(object)
    | st.just(type)
    | st.functions(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(st.characters(exclude_categories=())) | st.integers(), inner)
        | st.frozensets(st.integers())
    ),
    max_leaves=30,
)


def is_plain(value: object) -> bool:
    """The rule once more, as slowly as it reads."""
    match value:
        case None | bool():
            return True
        case int():
            return INTEGER_MIN <= value <= INTEGER_MAX
        case float():
            return math.isfinite(value)
        case str():
            return "\0" not in value and not any("\ud800" <= c <= "\udfff" for c in value)
        case list() | tuple():
            return all(map(is_plain, value))
        case dict():
            keys = all(isinstance(key, str) and is_plain(key) for key in value)
            return keys and all(map(is_plain, value.values()))
        case _:
            return False


@settings(deadline=None, max_examples=300)
@given(plain)
def test_json_is_kept_exactly_and_as_the_standard_library_writes_it(value: Any) -> None:  # noqa: ANN401
    text = check_storable(value, "payload", 10**9)
    assert text == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@settings(deadline=None, max_examples=300)
@given(anything, st.integers(0, 5000))
def test_any_object_becomes_storable_text_within_its_bounds(value: Any, room: int) -> None:  # noqa: ANN401
    kept = to_storable(value, room)
    assert len(kept.text.encode()) <= max(room, MARKER_BYTES_MAX)
    assert "\\u0000" not in kept.text.replace("\\\\", "")
    assert is_plain(json.loads(kept.text))


@settings(deadline=None, max_examples=300)
@given(anything)
def test_what_is_refused_at_the_door_is_marked_at_the_end(value: Any) -> None:  # noqa: ANN401
    kept = to_storable(value, 10**9)
    assert kept.truncated is not is_plain(value)
    if not kept.truncated:
        assert check_storable(value, "payload", 10**9) == kept.text
        return
    with pytest.raises(InvalidInput) as refusal:
        check_storable(value, "payload", 10**9)
    assert (refusal.value.field or "").startswith("payload")


@settings(deadline=None, max_examples=200)
@given(plain, st.data())
def test_no_text_is_longer_than_allowed(value: Any, data: st.DataObject) -> None:  # noqa: ANN401
    size = len(check_storable(value, "payload", 10**9).encode())
    with pytest.raises(InvalidInput, match="larger"):
        check_storable(value, "payload", data.draw(st.integers(0, size - 1)))
