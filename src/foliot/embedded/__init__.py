"""PostgreSQL of our own: on one machine Foliot brings its database along.

The binaries come from a wheel; we run its `initdb` and `postgres` ourselves, over a unix socket
only, with passwords, as an unprivileged user, and the server ends when its owner does.
"""

from foliot.embedded.errors import EmbeddedError
from foliot.embedded.server import EmbeddedServer

__all__ = ["EmbeddedError", "EmbeddedServer"]
