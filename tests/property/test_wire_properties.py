"""What is told of a stream does not depend on the pieces it comes in."""

from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.testing.wire import (
    BIND,
    CALL,
    CLOSE,
    COMPLETE,
    ERROR,
    EXECUTE,
    PARSE,
    QUERY,
    READY,
    SYNC,
    Answer,
    Conversation,
    Frames,
    Message,
    Order,
    encode,
)

NAMES = st.sampled_from([b"", b"s1", b"s2"])
TEXTS = st.binary(max_size=12).map(lambda text: text.replace(b"\0", b"0"))
SIZES = st.lists(st.integers(1, 40), min_size=1, max_size=60)


@dataclass(frozen=True)
class Said:
    """A message as its parts, before anybody encodes it."""

    kind: int
    parts: tuple[bytes, ...]  # strings, and last what has no end of its own

    def encoded(self) -> bytes:
        return encode(self.kind, b"\0".join(self.parts))


def said(kind: int, *parts: st.SearchStrategy[bytes]) -> st.SearchStrategy[Said]:
    return st.tuples(*parts).map(lambda values: Said(kind, values))


REST = st.binary(max_size=60)
ASKED = st.lists(
    st.one_of(
        said(PARSE, NAMES, TEXTS, REST),
        said(BIND, NAMES, NAMES, REST),
        said(EXECUTE, NAMES, st.just(b"\0\0\0\0")),
        said(QUERY, TEXTS, st.just(b"")),
        said(CLOSE, NAMES.map(lambda name: b"S" + name), st.just(b"")),
        said(CLOSE, NAMES.map(lambda name: b"P" + name), st.just(b"")),
        said(SYNC, st.just(b"")),
        said(CALL, REST),
        said(ord("d"), REST),
        said(ord("H"), st.just(b"")),
    ),
    max_size=30,
)
TOLD = st.lists(
    st.one_of(
        said(READY, st.sampled_from([b"I", b"T", b"E"])),
        said(COMPLETE, st.sampled_from([b"SELECT 1", b"COMMIT", b"ROLLBACK"]), st.just(b"")),
        said(ERROR, REST),
        said(ord("D"), REST),
        said(ord("A"), REST),
    ),
    max_size=30,
)


def cut(stream: bytes, sizes: list[int]) -> Iterator[bytes]:
    """The stream in pieces of these sizes, over and over."""
    at = turn = 0
    while at < len(stream):
        size = sizes[turn % len(sizes)]
        yield stream[at : at + size]
        at, turn = at + size, turn + 1


def expected_orders(messages: list[Said]) -> list[Order]:
    texts: dict[bytes, bytes] = {}
    bound: dict[bytes, tuple[bytes, bytes]] = {}
    orders, number = [], 1
    for message in messages:
        match message:
            case Said(kind=kind, parts=(name, text, _)) if kind == PARSE:
                texts[name] = text
            case Said(kind=kind, parts=(portal, name, _)) if kind == BIND:
                bound[portal] = (texts.get(name, b""), b"\0".join(message.parts))
            case Said(kind=kind, parts=(portal, _)) if kind == EXECUTE:
                orders.append(Order(*bound.get(portal, (b"", b"")), number))
            case Said(kind=kind, parts=(what, _)) if kind == CLOSE:
                (texts if what.startswith(b"S") else bound).pop(what[1:], None)
            case Said(kind=kind, parts=(text, _)) if kind == QUERY:
                orders.append(Order(text, b"", number))
        number += message.kind in (QUERY, SYNC, CALL)
    return orders


@settings(deadline=None, max_examples=300)
@given(ASKED, SIZES)
def test_statements_are_the_same_however_they_come(messages: list[Said], sizes: list[int]) -> None:
    talk = Conversation()
    stream = b"".join(message.encoded() for message in messages)
    found = [order for piece in cut(stream, sizes) for order in talk.ask(piece)]
    assert found == expected_orders(messages)


def expected_answers(messages: list[Said]) -> list[Answer]:
    """With the ends counted from the beginning of the stream."""
    answers: list[Answer] = []
    failed, tag, end = False, b"", 0
    for message in messages:
        end += len(message.encoded())
        if message.kind == COMPLETE:
            tag = message.parts[0]
        elif message.kind == ERROR:
            failed = True
        elif message.kind == READY:
            (status,) = message.parts
            failed = failed or status == b"E"
            answers.append(Answer(len(answers), end, status != b"I", failed, tag))
            failed, tag = False, b""
    return answers


@settings(deadline=None, max_examples=300)
@given(TOLD, SIZES)
def test_answers_are_the_same_however_they_come(messages: list[Said], sizes: list[int]) -> None:
    talk, found, before = Conversation(), [], 0
    for piece in cut(b"".join(message.encoded() for message in messages), sizes):
        for answer in talk.tell(piece):
            assert 0 < answer.end <= len(piece)
            found.append(answer._replace(end=before + answer.end))
        before += len(piece)
    assert found == expected_answers(messages)


@settings(deadline=None, max_examples=200)
@given(st.lists(st.tuples(st.sampled_from(b"ABC"), REST), max_size=20), SIZES, st.integers(0, 20))
def test_heads_are_the_beginnings_of_bodies(
    bodies: list[tuple[int, bytes]], sizes: list[int], wanted: int
) -> None:
    frames = Frames({ord("A"): wanted, ord("B"): 0})
    stream = b"".join(encode(*each) for each in bodies)
    found, before = [], 0
    for piece in cut(stream, sizes):
        found += [Message(kind, head, before + end) for kind, head, end in frames.feed(piece)]
        before += len(piece)
    expected, end = [], 0
    for kind, body in bodies:
        end += 5 + len(body)
        if kind != ord("C"):
            expected.append(Message(kind, body[: wanted if kind == ord("A") else 0], end))
    assert found == expected
