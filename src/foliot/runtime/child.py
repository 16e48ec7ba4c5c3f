"""One child process in a session of its own, so that a terminal's Ctrl-C reaches only its parent.

The parent decides when it ends: SIGTERM, ten seconds if not told otherwise, SIGKILL. What the child
has started in its process group ends with it. Should the parent die without a word, the child
notices by its lifeline and leaves by itself.
"""

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import DEVNULL
from asyncio.subprocess import Process as Subprocess
from collections.abc import Mapping, Sequence
from typing import Final

GRACE_SECONDS: Final = 10.0


class ChildProcess:
    def __init__(
        self,
        argv: Sequence[str],
        *,
        environ: Mapping[str, str],
        pass_fds: Sequence[int] = (),
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        self._argv = tuple(argv)
        self._grace_seconds = grace_seconds
        self._environ = dict(environ)
        self._pass_fds = tuple(pass_fds)
        self._process: Subprocess | None = None
        self._group: int | None = None

    @property
    def pid(self) -> int | None:
        alive = self._process is not None and self._process.returncode is None
        return self._process.pid if self._process is not None and alive else None

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *self._argv,
            env=self._environ,
            pass_fds=self._pass_fds,
            stdin=DEVNULL,
            start_new_session=True,
        )
        self._group = self._process.pid

    async def wait(self) -> int:
        """The exit status; a negative number is the signal that ended it."""
        if self._process is None:
            return 0
        status = await self._process.wait()
        self._end_group()
        return status

    async def stop(self) -> None:
        self._send(signal.SIGTERM)
        try:
            async with asyncio.timeout(self._grace_seconds):
                await self.wait()
        except TimeoutError:
            self.kill()
            await self.wait()

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def _end_group(self) -> None:
        """Once, as soon as the child has ended: later its number may be another's."""
        self._send(signal.SIGKILL)
        self._group = None

    def _send(self, number: signal.Signals) -> None:
        if self._group is not None:
            # macOS says "not permitted" of a group that is only waiting to be buried.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._group, number)
