"""The listening socket, and what is said when there is none to be had."""

import socket

import pytest

from foliot.runtime.listener import PortInUse, PortUnusable, listen, url_of


def test_a_free_port_is_found_and_then_in_use() -> None:
    with listen("127.0.0.1", 0) as first:
        port = int(url_of(first).rpartition(":")[2])
        with pytest.raises(PortInUse, match=f"port {port} is in use"):
            listen("127.0.0.1", port)


def test_a_port_for_root_alone_is_answered_with_the_option_to_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Ordinary(socket.socket):
        """As the kernel treats a user who is not root."""

        def bind(self, _: object) -> None:
            raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket, "socket", Ordinary)
    with pytest.raises(PortUnusable) as refused:
        listen("127.0.0.1", 80)
    assert str(refused.value) == (
        "cannot listen on 127.0.0.1, port 80: permission denied (choose one above 1023 with --port)"
    )
