"""The one listening socket of a server. The supervisor binds it and hands it to the API role, so
the port is known before the role starts, stays the same when it restarts, and nobody can take it
in between: callers wait in the socket's queue meanwhile.
"""

import errno
import socket
from dataclasses import dataclass

from foliot.core.errors import FoliotError


@dataclass(eq=False)
class PortUnusable(FoliotError):
    host: str
    port: int
    reason: str

    def __str__(self) -> str:
        return f"cannot listen on {self.host}, port {self.port}: {self.reason}"


@dataclass(eq=False)
class PortInUse(PortUnusable):
    reason: str = "it is in use"

    def __str__(self) -> str:
        return f"port {self.port} is in use (choose another, or --port 0 for a free one)"


def listen(host: str, port: int) -> socket.socket:
    """A socket bound to `host` and `port` (0: a free one) and listening."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise PortUnusable(host, port, error.strerror or str(error)) from None
    try:
        # A port whose last connections are still timing out is free; one with a listener is not.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(host, port) from None
        reason = error.strerror or str(error)
        if error.errno == errno.EACCES:
            reason = f"{reason.lower()} (choose one above 1023 with --port)"
        raise PortUnusable(host, port, reason) from None
    listener.setblocking(False)
    return listener


def inherited(fd: int) -> socket.socket:
    """The listening socket that the parent passed on as descriptor `fd`."""
    try:
        return socket.socket(fileno=fd)
    except OSError as error:
        reason = f"descriptor {fd} is no socket ({error.strerror})"
        raise PortUnusable("an inherited socket", 0, reason) from None


def url_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
