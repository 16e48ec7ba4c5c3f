"""A line between client and server: who waits for whom."""

import asyncio
import struct

import pytest

from foliot.testing.line import House, Line
from foliot.testing.points import Points
from foliot.testing.wire import QUERY, encode

OPENING = struct.pack("!II", 8, 196608)


class Socket(asyncio.Transport):
    """What was written to it, and whether it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.is_read = True
        self.is_closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    abort = close


class Desk:
    """A line with its two sockets, as far as they are there."""

    def __init__(self) -> None:
        self.ended: list[Line] = []
        self.line = Line(House(Points(), lambda _: None, lambda _: None, self.ended.append))
        self.client, self.server = Socket(), Socket()
        self.line.client.connection_made(self.client)

    def reach(self) -> None:
        self.line.client.data_received(OPENING)
        self.line.server.connection_made(self.server)
        self.line.reached()


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_the_client_waits_until_the_server_is_reached(desk: Desk) -> None:
    desk.line.client.data_received(OPENING[:5])
    seen = [desk.client.is_read]
    desk.line.client.data_received(OPENING[5:])
    seen.append(desk.client.is_read)
    desk.line.server.connection_made(desk.server)
    desk.line.reached()
    assert [*seen, desk.client.is_read] == [True, False, True]
    assert desk.server.written == OPENING


def test_a_client_that_left_meanwhile_leaves_no_connection_behind(desk: Desk) -> None:
    desk.line.client.data_received(OPENING)
    desk.line.client.connection_lost(None)
    desk.line.server.connection_made(desk.server)
    desk.line.reached()
    assert desk.server.is_closed
    assert desk.ended == [desk.line]


def test_who_does_not_read_is_not_read_to(desk: Desk) -> None:
    """Both ways: a side is read as long as the other takes it."""
    desk.reach()
    desk.line.client.pause_writing()
    assert (desk.client.is_read, desk.server.is_read) == (True, False)
    desk.line.server.pause_writing()
    assert (desk.client.is_read, desk.server.is_read) == (False, False)
    desk.line.client.resume_writing()
    assert (desk.client.is_read, desk.server.is_read) == (False, True)
    desk.line.server.resume_writing()
    assert (desk.client.is_read, desk.server.is_read) == (True, True)


def test_what_waits_is_brought_in_order_once_nothing_is_in_the_way(desk: Desk) -> None:
    desk.reach()
    flow = desk.line.to_server
    flow.wait("silent")
    flow.wait("slow")
    flow.bring(b"one ")
    flow.bring(b"two")
    flow.go_on("silent")
    assert desk.server.written == OPENING
    flow.go_on("slow")
    assert desk.server.written == OPENING + b"one two"


@pytest.mark.parametrize("broken", [b"Q\0\0\0\0", b"Q\0\0\0\3"])
def test_a_broken_message_ends_the_line(desk: Desk, broken: bytes) -> None:
    desk.reach()
    desk.line.client.data_received(broken)
    assert desk.client.is_closed
    assert desk.server.is_closed
    assert desk.server.written == OPENING


def test_when_the_server_leaves_the_client_has_heard_all_it_said(desk: Desk) -> None:
    desk.reach()
    desk.line.client.data_received(encode(QUERY, b"select 1\0"))
    desk.line.server.data_received(b"last words that are cut sho")
    desk.line.server.connection_lost(None)
    assert desk.client.written == b"last words that are cut sho"
    assert desk.client.is_closed
