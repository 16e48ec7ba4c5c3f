"""Headers of a job: names and values that cannot change the request around them."""

import pytest

from foliot.core.errors import InvalidInput
from foliot.core.headers import BYTES_MAX, check_headers


def test_ordinary_headers_pass() -> None:
    check_headers(
        {
            "Authorization": "Bearer ${secrets.TOKEN}",
            "X-Colour": "blue\tgreen",
            "content-type": "application/json; charset=utf-8",
            "X-Name": "Jürgen",
            "X-Empty": "",
            "tracestate": "a=b",
        },
        "target.headers",
    )


@pytest.mark.parametrize(
    "name",
    [
        "",
        "X Colour",
        "X:Colour",
        "X-Colour\r\nX-Evil",
        "X\0",
        "Füße",
        "(x)",
        "${secrets.A}",
        "a" * 201,
    ],
)
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="is no name of a header") as refused:
        check_headers({"A": "b", name: "x"}, "target.headers")
    assert refused.value.field == "target.headers"


@pytest.mark.parametrize(
    "name",
    [
        "Host",
        "CONTENT-LENGTH",
        "Transfer-Encoding",
        "Connection",
        "Keep-Alive",
        "Upgrade",
        "TE",
        "Trailer",
        "Expect",
        "Proxy-Authorization",
        "Proxy-Connection",
        "X-Idempotency-Key",
        "x-execution-id",
        "X-Job-ID",
        "X-Attempt-Number",
        "X-Fencing-Token",
        "traceparent",
        "webhook-id",
        "Webhook-Signature",
        "webhook-anything",
        "X-Foliot-Timeout",
    ],
)
def test_names_that_are_not_for_a_job_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"about the connection|set by Foliot") as refused:
        check_headers({name: "x"}, "target.headers")
    assert refused.value.field == f"target.headers.{name}"


@pytest.mark.parametrize(
    "value", ["a\r\nX-Evil: 1", "a\nb", "a\rb", "a\0b", "\x7f", "\x1b[31m", "\ud800"]
)
def test_a_value_with_a_control_character_is_refused(value: str) -> None:
    with pytest.raises(InvalidInput, match="line break or another control") as refused:
        check_headers({"X-Colour": value}, "target.headers")
    assert refused.value.field == "target.headers.X-Colour"


def test_the_same_name_in_another_case_is_refused() -> None:
    for first, second in (("X-Colour", "x-colour"), ("x-colour", "X-Colour")):
        with pytest.raises(InvalidInput, match=f"{second}: is there twice"):
            check_headers({first: "a", second: "b"}, "target.headers")


def test_number_and_size_have_limits() -> None:
    check_headers({f"X-{n}": "a" for n in range(100)}, "headers")
    with pytest.raises(InvalidInput, match="has 101 headers"):
        check_headers({f"X-{n}": "a" for n in range(101)}, "headers")
    with pytest.raises(InvalidInput, match="more than 8000 characters"):
        check_headers({"X": "a" * 8001}, "headers")
    check_headers({"X": "a" * 6000, "Y": "b" * (BYTES_MAX - 6010)}, "headers")
    with pytest.raises(InvalidInput, match="bytes in all"):
        check_headers({"X": "a" * 6000, "Y": "b" * (BYTES_MAX - 6009)}, "headers")
