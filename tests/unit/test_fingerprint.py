import pytest

from foliot.core.fingerprint import fingerprint, normalise
from foliot.core.model import ErrorType, Failure


@pytest.mark.parametrize(
    ("message", "plain"),
    [
        ("Order 42 of user 'bob' failed", "Order # of user # failed"),
        ("at 2026-01-01T00:00:00.5Z it broke", "at # it broke"),
        ("at 2026-01-01 00:00:00+02:00 it broke", "at # it broke"),
        ("connect to 10.0.0.1:5432 timed out after 1.5s", "connect to # timed out after #"),
        ("took -3 s", "took # s"),
        ("took 1e-9 s", "took # s"),
        ("job 550e8400-e29b-41d4-a716-446655440000 gone", "job # gone"),
        ("object at 0x7f3a9c, digest deadbeef", "object at #, digest #"),
        ("key ord_8f3k is taken", "key # is taken"),
        ('no "x" in `y`', "no # in #"),
        ("can't open and won't close", "can't open and won't close"),
        ("_private is missing", "_private is missing"),
        ("  two\n lines ", "two lines"),
        ("", ""),
    ],
)
def test_what_names_one_occurrence_is_taken_out(message: str, plain: str) -> None:
    assert normalise(message) == plain


@pytest.mark.parametrize(
    "other",
    [
        Failure(ErrorType.HANDLER_ERROR, "no such table"),
        Failure(ErrorType.HTTP_ERROR, "no such table", http_status=500),
        Failure(ErrorType.HTTP_ERROR, "no such column", http_status=503),
    ],
)
def test_type_status_and_words_tell_failures_apart(other: Failure) -> None:
    one = Failure(ErrorType.HTTP_ERROR, "no such table", http_status=503)
    assert fingerprint(one) != fingerprint(other)


def test_a_fingerprint_is_the_same_in_every_process() -> None:
    failure = Failure(ErrorType.HTTP_ERROR, "503 from upstream 7", http_status=503)
    assert fingerprint(failure) == "6c912ec7a2f2189f"


def test_only_the_beginning_of_a_long_message_counts() -> None:
    words = "failure in the middle of things " * 30
    assert fingerprint(Failure(ErrorType.TIMEOUT, words + "a")) == fingerprint(
        Failure(ErrorType.TIMEOUT, words + "b")
    )
