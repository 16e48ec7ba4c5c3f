"""A program that we start, as the account PostgreSQL runs as, and that ends when we do.

It has a session of its own, so that Ctrl-C in the terminal reaches only us and we decide the
order of stopping; no terminal, none of our files, and of our environment only what it needs.
"""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Final

from foliot.embedded.account import Account

TETHER: Final = Path(__file__).with_name("tether.py")
PASSED_ON: Final = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH")

# Fast: ends the clients. Immediate: recovery at the next start. Last: no choice left to it.
SHUTDOWN_STEPS: Final = ((signal.SIGINT, 20.0), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0))
AT_ONCE_SECONDS: Final = 2.0


class Child:
    """Started by the thread that calls, whose end is its end too: call from the main thread."""

    def __init__(self, command: Sequence[str], account: Account, output_fd: int) -> None:
        tether = [sys.executable, "-I", "-S", str(TETHER)]
        identity = [str(os.getpid()), str(account.user_id), str(account.group_id)]
        self._process = subprocess.Popen(  # noqa: S603 - no shell, no user input
            [*tether, *identity, *command],
            stdin=subprocess.DEVNULL,
            stdout=output_fd,
            stderr=subprocess.STDOUT,
            cwd="/",
            env={"LC_ALL": "C"} | {k: os.environ[k] for k in PASSED_ON if k in os.environ},
            start_new_session=True,
        )
        self.pid = self._process.pid
        self._ended: Future[int] = Future()
        self.output = b""
        threading.Thread(target=self._watch, name=f"wait-{self.pid}", daemon=True).start()

    @property
    def status(self) -> int | None:
        return self._ended.result() if self._ended.done() else None

    async def wait(self) -> int:
        """The exit status; a negative number is the signal that ended it."""
        return await asyncio.shield(asyncio.wrap_future(self._ended))

    async def end(self) -> None:
        for number, patience_seconds in SHUTDOWN_STEPS:
            self._process.send_signal(number)
            try:
                async with asyncio.timeout(patience_seconds):
                    await self.wait()
            except TimeoutError:
                continue
            return

    def end_at_once(self) -> None:
        """Also one that is frozen and hears nothing but the last word."""
        self._process.send_signal(signal.SIGQUIT)
        last_word = threading.Timer(AT_ONCE_SECONDS, self._process.kill)
        last_word.daemon = True
        last_word.start()

    def _watch(self) -> None:
        output, _ = self._process.communicate()
        self.output = output or b""
        self._ended.set_result(self._process.returncode)
