"""Whatever a value is and however a text is cut: nothing of the value gets through."""

import base64
import json
import re
from urllib.parse import quote

from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.core.masking import CHARS_MIN, Masker, StreamMasker

few = st.text("ab*•=/", min_size=CHARS_MIN, max_size=12)
any_text = st.text(st.characters(exclude_categories=["Cs"]), min_size=CHARS_MIN, max_size=60)
values = few | any_text
WAYS = (
    str,
    lambda value: json.dumps(value)[1:-1],
    lambda value: quote(value, safe=""),
    lambda value: base64.b64encode(value.encode()).decode(),
    lambda value: repr(value)[1:-1],
)


@st.composite
def texts_with_values(draw: st.DrawFn) -> tuple[list[str], str]:
    secret = draw(st.lists(values, min_size=1, max_size=3))
    written = st.builds(
        lambda value, way: way(value), st.sampled_from(secret), st.sampled_from(WAYS)
    )
    parts = draw(st.lists(written | few | any_text, max_size=12))
    return secret, "".join(parts)


@st.composite
def pieces_of(draw: st.DrawFn, text: str) -> list[str]:
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=10)))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@settings(max_examples=400, deadline=None)
@given(texts_with_values())
def test_no_form_of_a_value_survives(case: tuple[list[str], str]) -> None:
    secret, text = case
    masked = Masker(secret).mask(text)
    for value in secret:
        for way in WAYS:
            assert way(value) not in masked


@settings(max_examples=400, deadline=None)
@given(texts_with_values(), st.data())
def test_no_value_survives_a_stream_however_it_is_cut(
    case: tuple[list[str], str], data: st.DataObject
) -> None:
    secret, text = case
    stream = StreamMasker(Masker(secret))
    pieces = data.draw(pieces_of(text))
    said = "".join([*(stream.feed(piece) for piece in pieces), stream.rest()])
    for value in secret:
        for way in WAYS:
            assert way(value) not in said


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(["s3cret-value", "x", "yy" * 9]), max_size=20), st.data())
def test_a_stream_says_the_same_as_the_whole(parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts)
    stream = StreamMasker(Masker(["s3cret-value"]))
    pieces = data.draw(pieces_of(text))
    said = "".join([*(stream.feed(piece) for piece in pieces), stream.rest()])
    # Two side by side may be covered by one mask or by two.
    assert said.replace("******", "***") == re.sub("(s3cret-value)+", "***", text)


@settings(max_examples=200, deadline=None)
@given(st.lists(values, min_size=1, max_size=3), any_text)
def test_a_text_without_the_value_is_left_alone(secret: list[str], text: str) -> None:
    masker = Masker(secret)
    if masker.spans(text) or masker.mask(text) != text:
        return
    stream = StreamMasker(masker)
    assert stream.feed(text) + stream.rest() == text


@settings(max_examples=100, deadline=None)
@given(texts_with_values())
def test_masking_twice_is_masking_once(case: tuple[list[str], str]) -> None:
    secret, text = case
    masker = Masker(secret)
    assert masker.mask(masker.mask(text)) == masker.mask(text)


@settings(max_examples=100, deadline=None)
@given(st.text(min_size=1500, max_size=4000, alphabet="abc"), st.integers(0, 3999))
def test_a_long_value_leaves_less_than_eight_characters_where_it_was_cut(
    value: str, cut: int
) -> None:
    masked = Masker([value]).mask(f"<{value[:cut]}")
    assert len(masked.replace("***", "")) <= 1 + 7
