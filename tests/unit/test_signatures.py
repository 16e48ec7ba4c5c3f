"""Signatures are those of the standard, and nothing passes that was not signed as it stands."""

import base64

import pytest

from foliot.core.errors import InvalidInput
from foliot.core.signatures import (
    MESSAGE_ID,
    SIGNATURE,
    TIMESTAMP,
    InvalidSignature,
    read_key,
    sign,
    verify,
    write_key,
)

# The example of the standard's own libraries.
EXAMPLE_KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
EXAMPLE_BODY = b'{"test": 2432232314}'
EXAMPLE = {
    MESSAGE_ID: "msg_p5jXN8AQM9LWM0D4loKWxJek",
    TIMESTAMP: "1614265330",
    SIGNATURE: "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}
AT = 1_614_265_330
OLD, NEW, OTHER = bytes(range(32)), bytes(range(32, 64)), bytes(32)


def test_the_example_of_the_standard_fits() -> None:
    key = read_key(EXAMPLE_KEY)
    assert sign([key], EXAMPLE[MESSAGE_ID], AT, EXAMPLE_BODY) == EXAMPLE
    assert verify([key], EXAMPLE, EXAMPLE_BODY, AT) == EXAMPLE[MESSAGE_ID]


def test_a_key_is_read_as_it_was_written() -> None:
    assert write_key(OLD).startswith("whsec_")
    assert read_key(write_key(OLD)) == OLD


@pytest.mark.parametrize(
    "text",
    ["", "whsec_", "whsec_%%%", "whsec_" + base64.b64encode(bytes(23)).decode(), "AAAA" * 8],
)
def test_what_is_no_key_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_key(text, "keys[0]")
    assert refused.value.field == "keys[0]"
    assert len(text) < 8 or text not in str(refused.value)


def test_during_a_rotation_either_key_will_do() -> None:
    headers = sign([NEW, OLD], "m", AT, b"body")
    assert len(headers[SIGNATURE].split(" ")) == 2
    for keys in ([OLD], [NEW], [OTHER, OLD], [OLD, NEW]):
        assert verify(keys, headers, b"body", AT) == "m"
    with pytest.raises(InvalidSignature):
        verify([OTHER], headers, b"body", AT)


@pytest.mark.parametrize(
    ("changes", "body"),
    [
        ({}, b"body "),
        ({}, b""),
        ({MESSAGE_ID: "n"}, b"body"),
        ({TIMESTAMP: str(AT + 1)}, b"body"),
        ({SIGNATURE: "v1,AAAA"}, b"body"),
        ({SIGNATURE: "v2," + "A" * 44}, b"body"),
        ({SIGNATURE: "v1,é" * 30}, b"body"),
        ({SIGNATURE: ""}, b"body"),
        ({MESSAGE_ID: ""}, b"body"),
        ({TIMESTAMP: ""}, b"body"),
        ({TIMESTAMP: "-5"}, b"body"),
        ({TIMESTAMP: "1e9"}, b"body"),
        ({TIMESTAMP: "9" * 400}, b"body"),
        ({TIMESTAMP: "\u0661" * 10}, b"body"),
    ],
)
def test_whatever_is_changed_no_longer_fits(changes: dict[str, str], body: bytes) -> None:
    headers = sign([OLD], "m", AT, b"body") | changes
    with pytest.raises(InvalidSignature):
        verify([OLD], headers, body, AT)


def test_a_full_stop_cannot_move_from_the_id_to_the_time() -> None:
    """`m.1` at 2 would be signed like `m` at `1.2`."""
    with pytest.raises(ValueError, match="full stop"):
        sign([OLD], "m.1", AT, b"")
    headers = sign([OLD], "m", AT, b"1.body")
    moved = headers | {MESSAGE_ID: f"m.{AT}", TIMESTAMP: "1"}
    with pytest.raises(InvalidSignature):
        verify([OLD], moved, b"body", 1)


@pytest.mark.parametrize(
    ("seconds", "words"), [(301, "301 s old"), (-301, "301 s ahead of this clock")]
)
def test_a_message_of_another_time_is_refused(seconds: int, words: str) -> None:
    headers = sign([OLD], "m", AT, b"body")
    assert verify([OLD], headers, b"body", AT + 300) == "m"
    assert verify([OLD], headers, b"body", AT - 300) == "m"
    with pytest.raises(InvalidSignature, match=words):
        verify([OLD], headers, b"body", AT + seconds)


def test_a_strangers_thousand_signatures_are_not_all_looked_at() -> None:
    headers = sign([OLD], "m", AT, b"body")
    buried = {**headers, SIGNATURE: "v1,x " * 16 + headers[SIGNATURE]}
    with pytest.raises(InvalidSignature):
        verify([OLD], buried, b"body", AT)
