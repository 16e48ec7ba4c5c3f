"""Masking: no way of writing a value gets through, and what is not one stays as it is."""

import base64
import html
import json
import time
from urllib.parse import quote, quote_plus

import pytest

from foliot.core.masking import BLOCK_CHARS, Masker, StreamMasker

VALUE = 'pä/ss "wörd"+&%<x>\\=1'
MASKER = Masker([VALUE])


@pytest.mark.parametrize(
    "written",
    [
        VALUE,
        json.dumps(VALUE)[1:-1],
        json.dumps(VALUE, ensure_ascii=False)[1:-1],
        json.dumps(VALUE)[1:-1].replace("/", "\\/"),
        json.dumps(json.dumps(VALUE))[3:-3],
        quote(VALUE),
        quote(VALUE, safe=""),
        quote_plus(VALUE),
        quote(VALUE, safe="")
        .replace("%C3", "%c3")
        .replace("%A4", "%a4")
        .replace("%B6", "%b6")
        .replace("%2F", "%2f")
        .replace("%2B", "%2b")
        .replace("%3C", "%3c")
        .replace("%3E", "%3e")
        .replace("%5C", "%5c")
        .replace("%3D", "%3d"),
        repr(VALUE)[1:-1],
        ascii(VALUE)[1:-1],
        repr(VALUE.encode())[2:-1],
        html.escape(VALUE),
        VALUE.encode().hex(),
        VALUE.encode().hex().upper(),
        base64.b64encode(VALUE.encode()).decode(),
        base64.urlsafe_b64encode(VALUE.encode()).decode().rstrip("="),
    ],
)
def test_a_value_is_masked_however_it_is_written(written: str) -> None:
    assert MASKER.mask(f"before {written} after") == "before *** after"
    assert MASKER.mask(written * 2) == "***"


@pytest.mark.parametrize("before", ["", "u", "us", "user:", "a longer name:"])
@pytest.mark.parametrize("after", ["", "x", "xy", ":and more"])
def test_a_value_is_masked_inside_something_in_base64(before: str, after: str) -> None:
    whole = base64.b64encode(f"{before}s3cret-value-42{after}".encode()).decode()
    masked = Masker(["s3cret-value-42"]).mask(whole)
    assert "***" in masked
    # Of its fifteen bytes at most the first and the last can be guessed at.
    left = masked.split("***")
    assert len(left[0]) <= -(-len(before) * 8 // 6) + 1
    assert b"cret" not in base64.b64decode(
        left[0] + "=" * (-len(left[0]) % 4) or "", validate=False
    )


def test_the_longest_is_masked_where_several_fit() -> None:
    masker = Masker(["secret", "secret-longer"])
    assert masker.mask("a secret-longer and a secret.") == "a *** and a ***."


def test_values_that_overlap_leave_nothing() -> None:
    assert Masker(["abcdef", "defghi"]).mask("-abcdefghi-") == "-***-"


def test_several_values_are_masked_at_once() -> None:
    assert Masker(["first", "second"]).mask("second, first") == "***, ***"


@pytest.mark.parametrize("short", ["", "a", "abc"])
def test_a_value_too_short_to_be_known_again_is_left(short: str) -> None:
    assert Masker([short]).mask("abc abc") == "abc abc"
    assert Masker([short, "long enough"]).mask("abc long enough") == "abc ***"


def test_a_value_of_several_lines_is_masked_line_by_line() -> None:
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBg\n  kqhkiG9w0BAQ  \n-----END KEY-----\n"
    masker = Masker([key])
    assert masker.mask(f"the key is {key}!") == "the key is ***!"
    assert [masker.mask(f"> {line}") for line in key.splitlines()] == ["> ***"] * 2 + [
        ">   ***  ",
        "> ***",
    ]


def test_the_sign_of_the_mask_is_none_of_the_value() -> None:
    assert Masker(["****"]).mask("-****-") == "-•••-"
    assert "****" not in Masker(["****"]).mask("*****")
    masker = Masker(["*•█***"])
    assert "*•█***" not in masker.mask("*•█" * 3 + "***" + "*•█***")
    assert len(masker.cover) == 3


def test_the_end_of_a_text_that_was_cut_inside_a_value_is_masked() -> None:
    masker = Masker(["0123456789abcdef"])
    assert masker.mask("cut: 0123456789abcde") == "cut: ***"
    assert masker.mask("cut: 01234567") == "cut: ***"
    # So little of it tells nothing, and may be anything.
    assert masker.mask("cut: 0123456") == "cut: 0123456"
    assert masker.mask("0123456789 and more") == "0123456789 and more"


def test_a_long_value_is_masked_also_where_it_was_cut() -> None:
    value = "".join(f"{n:05}." for n in range(8000))
    masker = Masker([value])
    assert masker.mask(f"<{value}>") == "<***>"
    assert masker.mask(f"<{value[:20_000]}") == "<***"
    assert masker.reach <= BLOCK_CHARS


def test_names_and_numbers_in_json_are_masked_too() -> None:
    masker = Masker(["87654321", "s3cret"])
    value = {"s3cret": [87654321, 1.5, True, None, "a s3cret"], "n": {"m": (-876543210,)}}
    assert masker.mask_json(value) == {
        "***": ["***", 1.5, True, None, "a ***"],
        "n": {"m": ["-***0"]},
    }


def test_json_that_never_ends_is_not_followed() -> None:
    deep: list[object] = []
    deep.append(deep)
    assert "***" in str(Masker(["s3cret"]).mask_json(deep))


def test_bytes_that_are_no_text_stay_as_they_are() -> None:
    masker = Masker(["wörd"])
    assert masker.mask_bytes(b"\xff\xc3" + "wörd".encode() + b"\xc3") == b"\xff\xc3***\xc3"


def test_what_holds_no_value_is_the_same() -> None:
    text = "nothing to see here\n" * 3
    assert MASKER.mask(text) == text
    assert Masker([]).mask(text) == text
    assert StreamMasker(Masker([])).feed(text) == text


LONG_LINES = "\n".join(f"line {n:03} of a long value" for n in range(900))


def test_many_lines_are_masked_as_few_are() -> None:
    masker = Masker([LONG_LINES, "s3cret", "tiny"])
    assert masker.mask(f"<{LONG_LINES}>") == "<***>"
    for n in range(0, 900, 77):
        assert masker.mask(f"> line {n:03} of a long value <") == "> *** <"
    assert masker.mask("a s3cret and a tiny one") == "a *** and a *** one"
    assert masker.mask("nothing here: line 90") == "nothing here: line 90"
    # Cut inside of a line.
    assert masker.mask("> line 014 of a l") == "> ***"


@pytest.mark.parametrize(
    "value",
    [
        "a" * 65_535 + "b",
        "".join(f"{'a' * 250}{n:06}" for n in range(250)),
        "\n".join(f"aaaaaaaa{n:05}" for n in range(4000)),
        "\n".join(f"{n:05}aaa" for n in range(7000)),
        "\n".join("a" * n + "b" for n in range(10, 360)),
    ],
    ids=["alike", "blocks begin alike", "lines begin alike", "many lines", "many lengths"],
)
def test_a_hostile_value_costs_little_and_is_masked(value: str) -> None:
    """All its beginnings are in the text, over and over."""
    began = time.perf_counter()
    masker = Masker([value])
    for _ in range(100):
        masker.mask(("a" * 500 + "c") * 32)
    assert time.perf_counter() - began < 5
    assert masker.mask(f"<{value}") == "<***"


def test_a_stream_holds_back_no_more_than_it_must() -> None:
    stream = StreamMasker(Masker(["s3cret-value"]))
    said = "".join(stream.feed("x" * 50 + "s3cret-value") for _ in range(1000))
    assert len(said) > 50_000
    assert "s3cret" not in said + stream.rest()
