"""What passes between a client and PostgreSQL, and what it means."""

import struct

import pytest

from foliot.testing.wire import (
    BIND,
    CALL,
    CLOSE,
    COMPLETE,
    ERROR,
    EXECUTE,
    HEAD_BYTES,
    LONGEST_OPENING_BYTES,
    PARSE,
    QUERY,
    READY,
    SYNC,
    Answer,
    Conversation,
    Frames,
    Message,
    Opening,
    Order,
    WireBroken,
    encode,
    read_opening,
)

FLUSH, DESCRIBE, ROW, NOTIFICATION, COPIED, PARSED = b"HDDAd1"
SYNCED = encode(SYNC)


def opening(number: int, rest: bytes = b"") -> bytes:
    return struct.pack("!II", 8 + len(rest), number) + rest


def parse(name: bytes, sql: bytes) -> bytes:
    return encode(PARSE, name + b"\0" + sql + b"\0\0\0")


def bind(name: bytes, arguments: bytes = b"", portal: bytes = b"") -> bytes:
    return encode(BIND, portal + b"\0" + name + b"\0" + arguments)


def execute(portal: bytes = b"") -> bytes:
    return encode(EXECUTE, portal + b"\0\0\0\0\0")


def asked(*messages: bytes) -> list[tuple[bytes, int]]:
    return [(order.sql, order.round) for order in Conversation().ask(b"".join(messages))]


@pytest.mark.parametrize(
    ("number", "meaning"),
    [
        (196608, Opening.SESSION),
        (196610, Opening.SESSION),
        (80877102, Opening.CANCEL),
        (80877103, Opening.ENCRYPTION),
        (80877104, Opening.ENCRYPTION),
    ],
)
def test_the_first_message_says_what_is_wanted(number: int, meaning: Opening) -> None:
    first = opening(number, b"user\0foliot\0\0")
    assert read_opening(first + b"more") == (meaning, len(first))
    for length in range(len(first)):
        assert read_opening(first[:length]) is None


@pytest.mark.parametrize("length", [0, 7, LONGEST_OPENING_BYTES + 1, 0x474554])
def test_a_first_message_of_an_impossible_length_is_refused(length: int) -> None:
    with pytest.raises(WireBroken):
        read_opening(struct.pack("!II", length, 196608))


def test_a_message_shorter_than_its_own_length_is_refused() -> None:
    with pytest.raises(WireBroken):
        Conversation().ask(b"S\0\0\0\3")


def test_a_prepared_statement_is_known_by_its_name() -> None:
    talk = Conversation()
    assert talk.ask(parse(b"s1", b"select 1") + encode(DESCRIBE, b"Ss1\0") + encode(FLUSH)) == []
    said = talk.ask(bind(b"s1", b"needle") + execute() + SYNCED)
    assert said == [Order(b"select 1", b"\0s1\0needle", 1)]
    assert talk.ask(bind(b"s1") + execute() + SYNCED) == [Order(b"select 1", b"\0s1\0", 2)]


def test_the_unnamed_statement_is_the_last_one() -> None:
    for number in (b"1", b"2"):
        assert asked(parse(b"", b"select 0"), parse(b"", number), bind(b""), execute()) == [
            (number, 1)
        ]


def test_portals_with_names_are_kept_apart() -> None:
    assert asked(
        parse(b"a", b"A"),
        parse(b"b", b"B"),
        bind(b"a", portal=b"one"),
        bind(b"b", portal=b"two"),
        execute(b"one"),
        execute(b"two"),
        execute(b"one"),
    ) == [(b"A", 1), (b"B", 1), (b"A", 1)]


def test_what_was_closed_is_forgotten() -> None:
    closed = encode(CLOSE, b"Ss1\0") + encode(CLOSE, b"P\0")
    assert asked(parse(b"s1", b"A"), bind(b"s1"), closed, execute(), bind(b"s1"), execute()) == [
        (b"", 1),
        (b"", 1),
    ]


def test_a_round_ends_with_a_sync_a_query_or_a_call() -> None:
    query = encode(QUERY, b"commit\0")
    assert asked(query, query, encode(CALL), query, SYNCED, encode(FLUSH), query) == [
        (b"commit", 1),
        (b"commit", 2),
        (b"commit", 4),
        (b"commit", 6),
    ]


def test_a_statement_is_told_with_its_last_byte() -> None:
    talk = Conversation()
    whole = parse(b"", b"select 1") + bind(b"") + execute()
    assert talk.ask(whole[:-1]) == []
    assert talk.ask(whole[-1:]) == [Order(b"select 1", b"\0\0", 1)]


def test_copied_data_is_not_read() -> None:
    lines = encode(COPIED, encode(QUERY, b"commit\0")) * 3
    assert asked(encode(QUERY, b"copy t from stdin\0"), lines, encode(QUERY, b"end\0")) == [
        (b"copy t from stdin", 1),
        (b"end", 2),
    ]


def test_of_a_long_body_the_beginning_is_kept() -> None:
    talk = Conversation()
    arguments = b"needle" + b"x" * (2 * HEAD_BYTES)
    (order,) = talk.ask(parse(b"", b"A") + bind(b"", arguments) + execute())
    assert order.sql == b"A"
    assert order.arguments == (b"\0\0" + arguments)[:HEAD_BYTES]
    (query,) = talk.ask(encode(QUERY, b"y" * (2 * HEAD_BYTES)))
    assert query.sql == b"y" * HEAD_BYTES


def test_a_body_that_is_not_wanted_is_never_kept() -> None:
    frames = Frames({READY: 1})
    whole = encode(ROW, b"z" * 1000) + encode(READY, b"I")
    pieces = [whole[at : at + 100] for at in range(0, len(whole), 100)]
    found = [message for piece in pieces for message in frames.feed(piece)]
    assert found == [Message(READY, b"I", len(pieces[-1]))]


def ready(status: bytes) -> bytes:
    return encode(READY, status)


def done(tag: bytes) -> bytes:
    return encode(COMPLETE, tag + b"\0")


FAILURE = encode(ERROR, b"SERROR\0\0")


@pytest.mark.parametrize(
    ("said", "in_transaction", "failed", "tag"),
    [
        (done(b"SELECT 1") + ready(b"I"), False, False, b"SELECT 1"),
        (done(b"BEGIN") + ready(b"T"), True, False, b"BEGIN"),
        (FAILURE + ready(b"I"), False, True, b""),
        (FAILURE + ready(b"E"), True, True, b""),
        (done(b"INSERT 0 1") + FAILURE + ready(b"I"), False, True, b"INSERT 0 1"),
        (encode(PARSED) + ready(b"E"), True, True, b""),
        (done(b"ROLLBACK") + ready(b"I"), False, False, b"ROLLBACK"),
        (encode(ROW, b"xZC") * 9 + done(b"A") + done(b"B") + ready(b"I"), False, False, b"B"),
        (encode(NOTIFICATION, b"Z") + ready(b"I"), False, False, b""),
    ],
)
def test_an_answer_says_what_became_of_its_round(
    said: bytes, in_transaction: bool, failed: bool, tag: bytes
) -> None:
    talk = Conversation()
    (answer,) = talk.tell(said)
    assert answer == Answer(0, len(said), in_transaction, failed, tag)
    (next_answer,) = talk.tell(ready(b"I"))
    assert next_answer == Answer(1, 6, False, False, b"")


def test_several_answers_in_one_piece_have_their_own_ends() -> None:
    one, two = done(b"A") + ready(b"T"), ready(b"I")
    rest = done(b"C")
    talk = Conversation()
    assert [(each.round, each.end) for each in talk.tell(one + two + rest)] == [
        (0, len(one)),
        (1, len(one + two)),
    ]
    assert talk.answering == 2
