"""The messages on a connection to PostgreSQL, told from bytes that arrive in any pieces.

Nothing here reads or writes: who sees the bytes pass gives them in, and learns which statements
were asked for and which rounds were answered. A round is what the server ends with one
ReadyForQuery: everything up to a Sync, or one simple query. Headers are read, and of a body no more
than its first 64 KiB; what else passes (rows, copied data, notifications) is counted off unseen.
"""

from collections.abc import Iterator, Mapping
from enum import Enum, auto
from struct import Struct
from typing import Final, NamedTuple

HEAD_BYTES: Final = 65_536
LONGEST_OPENING_BYTES: Final = 10_000  # the server's own limit
HEADER: Final = Struct("!BI")  # the kind, and the length of itself and the body
OPENING: Final = Struct("!II")  # the first message of all has no kind; the number says what it is


class WireBroken(ValueError):
    """What passes is not PostgreSQL's protocol."""


class Opening(Enum):
    """What a client's first message asks for."""

    SESSION = auto()
    CANCEL = auto()  # of another connection's statement; nothing follows
    ENCRYPTION = auto()  # answered with one byte; another opening follows


NOT_SESSIONS: Final[Mapping[int, Opening]] = {
    80877102: Opening.CANCEL,
    80877103: Opening.ENCRYPTION,  # by TLS
    80877104: Opening.ENCRYPTION,  # by GSSAPI
}


def read_opening(data: bytes) -> tuple[Opening, int] | None:
    """The first message and its length; None while it is incomplete."""
    if len(data) < OPENING.size:
        return None
    length, number = OPENING.unpack_from(data)
    if not OPENING.size <= length <= LONGEST_OPENING_BYTES:
        raise WireBroken(f"a first message of {length} bytes")
    if len(data) < length:
        return None
    return NOT_SESSIONS.get(number, Opening.SESSION), length


class Message(NamedTuple):
    kind: int
    head: bytes  # the body's first bytes, as many as were asked for
    end: int  # where it ends in the piece that completed it


def encode(kind: int, body: bytes = b"") -> bytes:
    return HEADER.pack(kind, len(body) + 4) + body


class Frames:
    """Cuts a stream into messages; tells those of the kinds in `heads` once they are complete."""

    def __init__(self, heads: Mapping[int, int]) -> None:
        self._heads = heads
        self._rest = b""  # of a message whose header or head is incomplete
        self._skip = 0  # bytes of a body that are still to pass
        self._passing: tuple[int, bytes] | None = None  # kind and head of that body's message

    def feed(self, piece: bytes) -> Iterator[Message]:
        """To be read to the end: what is not asked for is not cut."""
        before = len(self._rest)
        data = self._rest + piece if before else piece
        self._rest = b""
        size = len(data)
        at = min(self._skip, size)
        self._skip -= at
        if self._skip:
            return
        if self._passing is not None:
            yield Message(*self._passing, at)
            self._passing = None
        while at < size:
            if size - at < HEADER.size:
                self._rest = data[at:]
                return
            kind, length = HEADER.unpack_from(data, at)
            if length < 4:
                raise WireBroken(f"a message of {length} bytes")
            end = at + 1 + length
            wanted = self._heads.get(kind)
            if wanted is not None:
                body = at + HEADER.size
                head_end = min(end, body + wanted)
                if head_end > size:
                    self._rest = data[at:]
                    return
                if end > size:
                    self._passing = kind, data[body:head_end]
                else:
                    yield Message(kind, data[body:head_end], end - before)
            if end > size:
                self._skip = end - size
                return
            at = end


class Order(NamedTuple):
    """The client has the server execute a statement."""

    sql: bytes
    arguments: bytes  # as they are encoded on the wire, the first 64 KiB
    round: int


class Answer(NamedTuple):
    """The server has ended a round."""

    round: int
    end: int  # where the round ends in the piece that was told
    in_transaction: bool  # one is open now
    failed: bool  # something in the round did, or in the transaction before
    tag: bytes  # of the last statement, e.g. COMMIT; empty if none was executed


PARSE, BIND, EXECUTE, QUERY, CLOSE, SYNC, CALL = b"PBEQCSF"
READY, COMPLETE, ERROR = b"ZCE"
ASKED: Final = dict.fromkeys((PARSE, BIND, EXECUTE, QUERY, CLOSE), HEAD_BYTES) | {SYNC: 0, CALL: 0}
TOLD: Final = {READY: 1, COMPLETE: 64, ERROR: 0}
IDLE, FAILED = b"I", b"E"


class Conversation:
    """Both directions of one session, from behind its opening, which is round 0."""

    def __init__(self) -> None:
        self._asked = Frames(ASKED)
        self._told = Frames(TOLD)
        self._statements: dict[bytes, bytes] = {}  # the text of each name
        self._portals: dict[bytes, tuple[bytes, bytes]] = {}  # text and arguments of each name
        self.asking = 1  # the round that the client has not ended yet
        self.answering = 0
        self._failed = False
        self._tag = b""

    def ask(self, piece: bytes) -> list[Order]:
        """The statements whose last byte, without which nothing is executed, is in `piece`."""
        orders: list[Order] = []
        for kind, head, _ in self._asked.feed(piece):
            if kind == PARSE:
                name, text = _strings(head)
                self._statements[name] = text
            elif kind == BIND:
                portal, name = _strings(head)
                self._portals[portal] = self._statements.get(name, b""), head
            elif kind == EXECUTE:
                sql, arguments = self._portals.get(_strings(head)[0], (b"", b""))
                orders.append(Order(sql, arguments, self.asking))
            elif kind == QUERY:
                orders.append(Order(_strings(head)[0], b"", self.asking))
            elif kind == CLOSE:
                closed = self._statements if head[:1] == b"S" else self._portals
                closed.pop(_strings(head[1:])[0], None)
            if kind in (QUERY, SYNC, CALL):
                self.asking += 1
        return orders

    def tell(self, piece: bytes) -> list[Answer]:
        """The rounds that end in `piece`."""
        answers: list[Answer] = []
        for kind, head, end in self._told.feed(piece):
            if kind == COMPLETE:
                self._tag = head.rstrip(b"\0")
            elif kind == ERROR:
                self._failed = True
            else:
                failed = self._failed or head == FAILED
                answers.append(Answer(self.answering, end, head != IDLE, failed, self._tag))
                self.answering += 1
                self._failed, self._tag = False, b""
        return answers


def _strings(head: bytes) -> tuple[bytes, bytes]:
    """The first two strings of a body; each ends with a zero."""
    first, _, rest = head.partition(b"\0")
    return first, rest.partition(b"\0")[0]
