"""A client's connection and the one behind it to the server, as a proxy holds them.

What passes is passed on whole, in the pieces it came in. A network that is silent or slow loses
nothing from the middle of a stream: what waits arrives late, or the connection ends.
"""

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Callable
from typing import Final, Literal, NamedTuple, cast

from foliot.testing.points import Point, Points, Strike, Verdict, When, judge, name_of
from foliot.testing.wire import Answer, Conversation, Opening, WireBroken, read_opening

# full: the other side reads too slowly; unreached: there is no connection to the server yet.
Reason = Literal["full", "silent", "slow", "unreached"]

RESET_AT_CLOSE: Final = struct.pack("ii", 1, 0)  # linger for no time: close() sends RST, not FIN
NO_ENCRYPTION: Final = b"N"


class Flow:
    """One way of a line. While there is a reason to wait nothing is read, and what has been read
    is kept."""

    def __init__(self) -> None:
        self._source: asyncio.Transport | None = None
        self._target: asyncio.Transport | None = None
        self._reasons: set[Reason] = set()
        self._kept: list[bytes] = []

    def comes_from(self, source: asyncio.Transport) -> None:
        self._source = source
        if self._reasons:
            source.pause_reading()

    def goes_to(self, target: asyncio.Transport) -> None:
        self._target = target

    @property
    def is_clear(self) -> bool:
        return not self._reasons

    def wait(self, reason: Reason) -> None:
        self._reasons.add(reason)
        if self._source is not None:
            self._source.pause_reading()

    def go_on(self, reason: Reason) -> None:
        self._reasons.discard(reason)
        while self._kept and not self._reasons:
            self._write(self._kept.pop(0))
        if not self._reasons and self._source is not None:
            self._source.resume_reading()

    def bring(self, data: bytes) -> None:
        if self._reasons:
            self._kept.append(data)
        else:
            self._write(data)

    def _write(self, data: bytes) -> None:
        if self._target is not None and not self._target.is_closing():
            self._target.write(data)


class End(asyncio.Protocol):
    """One of a line's two sockets, as the event loop knows it."""

    def __init__(
        self, reads: Flow, writes: Flow, hear: Callable[[bytes], None], lose: Callable[[], None]
    ) -> None:
        self._reads = reads
        self._writes = writes
        self._hear = hear
        self._lose = lose
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._reads.comes_from(self._transport)
        self._writes.goes_to(self._transport)

    def data_received(self, data: bytes) -> None:
        self._hear(data)

    def connection_lost(self, _error: Exception | None) -> None:
        self._lose()

    def pause_writing(self) -> None:
        self._writes.wait("full")

    def resume_writing(self) -> None:
        self._writes.go_on("full")

    def close(self) -> None:
        """After what has been written is sent."""
        if self._transport is not None:
            self._transport.close()

    def abort(self, *, reset: bool = False) -> None:
        if self._transport is None:
            return
        if reset and not self._transport.is_closing():
            sock = self._transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
        self._transport.abort()


class House(NamedTuple):
    """What a line needs of the proxy it belongs to."""

    points: Points
    reach: Callable[["Line"], None]  # the server, for a line that has been opened
    slow_down: Callable[[Flow], None]  # if the network is slow
    leave: Callable[["Line"], None]


class Line:
    def __init__(self, house: House) -> None:
        self.to_server, self.to_client = Flow(), Flow()
        self.client = End(self.to_server, self.to_client, self._hear_client, self._end)
        self.server = End(self.to_client, self.to_server, self._hear_server, self._end)
        self.stranded = False
        self.ended = False
        self._house = house
        self._opening: bytes | None = b""  # as much as came; None once it is complete
        self._talk: Conversation | None = None
        self._asked: deque[tuple[int, str]] = deque()  # rounds and statements without an answer
        self._strikes: dict[int, list[Strike]] = {}  # that wait for the end of a round
        self._held: list[bytes] = []  # the answer of such a round, so far

    def reached(self) -> None:
        """The server, after the client has been heard."""
        if self.ended:
            self.cut()
        self.to_server.go_on("unreached")

    def cut(self, *, reset: bool = False) -> None:
        self.client.abort(reset=reset)
        self.server.abort()
        self._end()

    def forget_strikes(self) -> None:
        """What waits for the end of a round is not done; its answer passes."""
        self._strikes.clear()
        self._let_go()

    def _end(self) -> None:
        """One end is gone: the other follows, and hears before that what was said."""
        if self.ended:
            return
        self.ended = True
        self._let_go()
        for strikes in self._strikes.values():
            for strike in strikes:
                self._house.points.wait_for(strike)
        self._strikes.clear()
        self.client.close()
        self.server.close()
        self._house.leave(self)

    def _hear_client(self, data: bytes) -> None:
        if self.stranded or self.ended:
            return
        try:
            if self._opening is not None:
                self._open(self._opening + data)
            elif self._may_pass(data):
                self._pass(self.to_server, data)
        except WireBroken:
            self.cut()

    def _open(self, data: bytes) -> None:
        self._opening = data
        while found := read_opening(data):
            opening, length = found
            if opening is not Opening.ENCRYPTION:
                break
            # Nobody could read along.
            self.to_client.bring(NO_ENCRYPTION)
            self._opening = data = data[length:]
        else:
            return
        self._opening = None
        if opening is Opening.SESSION:
            self._talk = Conversation()
        self.to_server.wait("unreached")
        self._house.reach(self)
        if self._may_pass(data[length:]):
            self.to_server.bring(data)

    def _may_pass(self, data: bytes) -> bool:
        """Do what is to be done before what is asked for in `data`; False if it must not pass."""
        if self._talk is None:
            return True
        for order in self._talk.ask(data):
            name = name_of(order.sql)
            self._house.points.seen[Point("before", name)] += 1
            self._asked.append((order.round, name))
            strike = self._house.points.take(name, order)
            if strike is None:
                continue
            if strike.point.when != "before":
                self._strikes.setdefault(order.round, []).append(strike)
            elif not self._strike(strike):
                return False
        return True

    def _hear_server(self, data: bytes) -> None:
        if self.stranded or self.ended:
            return
        if self._talk is None:
            self._pass(self.to_client, data)
            return
        try:
            answers = self._talk.tell(data)
        except WireBroken:
            self.cut()
            return
        for answer in answers:
            self._count(answer)
        if not self._strikes:
            self._pass(self.to_client, data)
        else:
            self._hold(self._talk, data, answers)

    def _count(self, answer: Answer) -> None:
        """`after` a statement that was a transaction of its own, or ended one."""
        while self._asked and self._asked[0][0] <= answer.round:
            _, name = self._asked.popleft()
            if not answer.failed:
                when: When = "inside" if answer.in_transaction else "after"
                self._house.points.seen[Point(when, name)] += 1

    def _hold(self, talk: Conversation, data: bytes, answers: list[Answer]) -> None:
        """A round is answered for good only with its last byte: rows and the statement's tag may
        come before the server has committed it. Until the client has ended the round, it may be
        waiting for a part of the answer: how a statement was parsed."""
        at = 0
        for answer in answers:
            self._held.append(data[at : answer.end])
            at = answer.end
            if not self._settle(answer):
                return
            self._let_go()
        self._held.append(data[at:])
        if talk.answering not in self._strikes or talk.answering == talk.asking:
            self._let_go()

    def _settle(self, answer: Answer) -> bool:
        """Do what waited for the end of this round; False if the line was cut."""
        while strikes := self._strikes.get(answer.round):
            strike = strikes.pop(0)
            verdict = judge(strike.point.when, answer)
            if verdict is Verdict.AGAIN:
                self._house.points.wait_for(strike)
            elif verdict is Verdict.LATER:
                self._strikes.setdefault(answer.round + 1, []).append(strike)
            elif not self._strike(strike):
                return False
        self._strikes.pop(answer.round, None)
        return True

    def _strike(self, strike: Strike) -> bool:
        strike.strike()
        if strike.cut:
            self.cut()
        return not self.ended

    def _let_go(self) -> None:
        held = b"".join(self._held)
        self._held.clear()
        if held:
            self._pass(self.to_client, held)

    def _pass(self, flow: Flow, data: bytes) -> None:
        if flow.is_clear:
            self._house.slow_down(flow)
        flow.bring(data)
