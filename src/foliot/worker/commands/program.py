"""The handler that runs a program, in a host of its own: starts it, hears it, buries it.

The program is over when the process that was started is. What it has started and left running ends
with it, wherever in the family it is: what loses its parent becomes a child of this host.
"""

import asyncio
import os
import signal
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from foliot.runtime.family import end_group, end_strays
from foliot.worker.app import App
from foliot.worker.commands.bounds import bound_to
from foliot.worker.commands.heard import Stream
from foliot.worker.hosts.attempt import CURRENT, Attempt
from foliot.worker.tasks import LogSource

RUN: Final = "run a command"

app = App()


@dataclass(frozen=True, slots=True)
class Order:
    """What to run: a file under the name that `argv` begins with."""

    program: str
    argv: list[str]
    env: dict[str, str]
    folder: str
    stdin: str


@app.job(name=RUN, in_process=True)
async def run_program(order: Order) -> dict[str, Any]:
    """How it ended, or why it did not begin, for `ends` to read."""
    attempt = CURRENT.get()
    if attempt is None:
        raise RuntimeError("it is called by no host")
    try:
        running = _Running(order, attempt)
    except OSError as error:
        return {"errno": error.errno, "reason": error.strerror or str(error)}
    try:
        await running.wait()
    except asyncio.CancelledError:
        running.ask_to_stop()
        await running.wait()
        raise
    finally:
        status = running.bury()
    return {
        "status": status,
        "json": running.stdout.as_json(),
        "stdout": running.stdout.tail(),
        "stderr": running.stderr.tail(),
    }


class _Running:
    def __init__(self, order: Order, attempt: Attempt) -> None:
        """Raises OSError. What it reads is a file, so it does not matter whether it does."""
        with tempfile.TemporaryFile(dir=order.folder) as given:
            given.write(order.stdin.encode())
            given.seek(0)
            self.stdout = Stream(attempt, LogSource.STDOUT)
            self.stderr = Stream(attempt, LogSource.STDERR)
            try:
                self._process = self._start(order, given.fileno())
            except BaseException:
                self._close()
                raise
        self.stdout.listen()
        self.stderr.listen()
        loop = asyncio.get_running_loop()
        # It stays unburied, so that its number cannot become another's.
        self._over = loop.run_in_executor(
            None, os.waitid, os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT
        )

    def _start(self, order: Order, stdin: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - the worker has looked whether it may be run
            [word.encode() for word in order.argv],
            executable=order.program,
            env={name.encode(): value.encode() for name, value in order.env.items()},
            cwd=order.folder,
            stdin=stdin,
            stdout=self.stdout.write_fd,
            stderr=self.stderr.write_fd,
            start_new_session=True,
            preexec_fn=bound_to(os.getpid()),  # noqa: PLW1509 - there is one thread here
        )

    async def wait(self) -> None:
        await asyncio.shield(self._over)

    def ask_to_stop(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)

    def bury(self) -> int:
        """Whatever of it is left is ended; what it has said by then counts."""
        end_group(self._process.pid)  # where nobody can adopt strays, this is what there is
        status = self._process.wait()
        end_strays()
        self._close()
        return status

    def _close(self) -> None:
        self.stdout.close()
        self.stderr.close()
