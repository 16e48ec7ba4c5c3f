"""Names as this machine resolves them: hosts file, name servers, search domains.

The system's call blocks for as long as its servers let it, and cannot be stopped. Each runs in a
thread that nobody waits for at the end; a name server that does not answer holds a few of them,
never all memory and never the exit.
"""

import asyncio
import errno
import logging
import socket
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from threading import Thread
from typing import Final

from foliot.core.hosts import Address

log = logging.getLogger(__name__)

THREADS_MAX: Final = 32
MEMO_SIZE: Final = 4096


class MachineLookup:
    """Many names at once; who finds all threads taken waits for one."""

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(THREADS_MAX)

    async def __call__(self, name: str) -> Sequence[Address]:
        """Raises OSError: EAGAIN where this machine has no thread for it."""
        await self._free.acquire()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Sequence[Address]] = loop.create_future()

        def tell(found: Sequence[Address] | OSError) -> None:
            # Only here: who has stopped waiting has not ended the thread.
            self._free.release()
            if answer.done():
                return
            if isinstance(found, OSError):
                answer.set_exception(found)
            else:
                answer.set_result(found)

        def look() -> None:
            found = _ask(name)
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(tell, found)

        try:
            Thread(target=look, name=f"resolve {name[:40]}", daemon=True).start()
        except (RuntimeError, MemoryError) as error:
            self._free.release()  # nobody else will
            raise OSError(errno.EAGAIN, f"no thread to resolve {name}") from error
        return await answer


@lru_cache(maxsize=MEMO_SIZE)
def read_address(text: str) -> Address:
    """As the system writes it. A zone says through which door, not who is behind it."""
    address = ip_address(text)
    return IPv6Address(int(address)) if isinstance(address, IPv6Address) else address


def _ask(name: str) -> Sequence[Address] | OSError:
    try:
        found = socket.getaddrinfo(name.encode("ascii"), None, type=socket.SOCK_STREAM)
        return [read_address(str(place[0])) for *_, place in found]
    except OSError as error:
        return error
    except Exception:  # who waits would wait for ever, and the place be gone
        log.exception("what was found for %s cannot be read", name)
        return OSError(None, f"{name} could not be resolved")
