"""One process of the system and its life: started with a wall clock that is wrong, killed, frozen,
started again. What it says goes to a file of its own, across all its lives."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from foliot.testing.commands import is_alive
from foliot.testing.wrong_clock import LIBRARY, clock_off_by, remove_shared_memory

READY_SECONDS: Final = 90.0
LOOK_SECONDS: Final = 0.05
# A worker's processes notice its death by themselves; the kernel tells them at once.
ORPHANS_SECONDS: Final = 5.0
# A worker lets what runs go on for 30 s, then stops it and hands it back.
STOP_SECONDS: Final = 40.0
# A scheduler watches for 15 s before it calls a worker dead.
SETTLED_SECONDS: Final = 16.0
_IDENTITY: Final = re.compile(r"(?:scheduler|worker) ([0-9a-f-]{36}) (?:runs on|serves) ")


class NotAtWork(Exception):
    """A node that ended, or did not get ready in time, after its start."""


class Role(StrEnum):
    SCHEDULER = "scheduler"
    WORKER = "worker"
    API = "api"


# What each says when it is at work.
READY_WORDS: Final = {
    Role.SCHEDULER: " runs on ",
    Role.WORKER: " serves ",
    Role.API: " listening on ",
}


@dataclass(frozen=True, slots=True)
class Birth:
    """What a node is started with. A worker's name is another at each start."""

    arguments: Sequence[str]
    environ: Mapping[str, str]
    lifeline_fd: int


class Node:
    def __init__(self, name: str, role: Role, birth: Birth, log: Path) -> None:
        self.name = name
        self.role = role
        self.starts = 0
        self.trouble: str | None = None  # what it suffers from at present
        self._birth = birth
        self._log = log
        self._log_from = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ready = False
        self._well_since = 0.0
        self._family: list[int] = []  # what it had started when it was killed

    @property
    def pid(self) -> int:
        return 0 if self._process is None else self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def is_well(self) -> bool:
        return self.is_alive and self._is_ready and self.trouble is None

    @property
    def is_settled(self) -> bool:
        """It has been well for so long that it may judge others: whoever has just come to the
        database, or has lost it for a moment, calls nobody dead for a while."""
        return self.is_well and time.monotonic() - self._well_since > SETTLED_SECONDS

    @property
    def has_left(self) -> bool:
        """It was at work, nobody has harmed it, and it is no more."""
        return self._is_ready and self.trouble is None and not self.is_alive

    @property
    def registered_name(self) -> str:
        """How the worker of this life is called in the database."""
        return f"{self.name}.{self.starts}"

    @property
    def identity(self) -> str | None:
        """The id under which it is at work: what it has called itself last in this life."""
        found = _IDENTITY.findall(self._said())
        return found[-1] if found else None

    async def start(self, clock_off_seconds: int) -> None:
        """Until it is at work."""
        self.starts += 1
        self._is_ready = False
        wrong = clock_off_by(clock_off_seconds) if LIBRARY.exists() else {}
        name = ("--name", self.registered_name) if self.role is Role.WORKER else ()
        with self._log.open("ab") as log:
            log.write(f"# start {self.starts}, clock off by {clock_off_seconds} s\n".encode())
            log.flush()
            self._log_from = self._log.stat().st_size
            self._process = subprocess.Popen(  # noqa: ASYNC220, S603 - no wait; our own command
                [sys.executable, "-P", "-m", "foliot", *self._arguments(), *name],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=dict(self._birth.environ) | wrong,
                pass_fds=(self._birth.lifeline_fd,),
                start_new_session=True,
            )
        await self._ready()

    def unsettle(self) -> None:
        """Well from now on, at the earliest."""
        self._well_since = time.monotonic()

    def kill(self) -> None:
        """The process itself; what it has started is left to notice."""
        self._family = self._kin()
        self._send(signal.SIGKILL)

    def kill_family(self) -> None:
        """With all that it has started."""
        self.kill()
        for pid in self._family:
            send_signal(pid, signal.SIGKILL)

    def freeze(self, *, whole: bool) -> None:
        """With all that it has started, or alone."""
        self._send(signal.SIGSTOP)
        if whole:
            for pid in self._kin():
                send_signal(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        for pid in self._kin():
            send_signal(pid, signal.SIGCONT)
        self._send(signal.SIGCONT)

    def hosts(self) -> list[int]:
        """The processes that run handlers: its grandchildren."""
        return [pid for pid in self._kin() if pid not in children(self.pid)]

    async def gone(self) -> list[int]:
        """Once the killed process is buried: what it had started and should have gone with it."""
        if self._process is None:
            return []
        await asyncio.to_thread(self._process.wait)
        remove_shared_memory(self.pid)
        for _ in range(int(ORPHANS_SECONDS / LOOK_SECONDS)):
            if not any(map(is_alive, self._family)):
                break
            await asyncio.sleep(LOOK_SECONDS)
        return [pid for pid in self._family if is_alive(pid)]

    async def end(self) -> None:
        """Politely, then not."""
        if self.is_alive and self._process is not None:
            self.thaw()
            self._send(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(self._process.wait, STOP_SECONDS)
        self.end_at_once()

    def end_at_once(self) -> None:
        if self._process is not None:
            self.kill_family()
            self._process.wait()
            remove_shared_memory(self.pid)

    def note(self, line: str) -> None:
        """Said of it rather than by it, in the same file."""
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"{line}\n")

    def _kin(self) -> list[int]:
        """All that it has started. Nobody's once it has ended: its number may be another's then."""
        return family(self.pid) if self.is_alive else []

    def _arguments(self) -> list[str]:
        return [*self._birth.arguments, "--lifeline-fd", str(self._birth.lifeline_fd)]

    async def _ready(self) -> None:
        end = time.monotonic() + READY_SECONDS
        while READY_WORDS[self.role] not in self._said():
            if not self.is_alive or time.monotonic() > end:
                raise NotAtWork(f"{self.name} did not come to work")
            await asyncio.sleep(LOOK_SECONDS)
        self._is_ready = True
        self.unsettle()

    def _said(self) -> str:
        with self._log.open("rb") as log:
            log.seek(self._log_from)
            return log.read().decode(errors="replace")

    def _send(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)  # looks first whether it still is this process


def family(pid: int) -> list[int]:
    """All that it has started, and what they have: each after its parent."""
    found = children(pid)
    return found + [each for child in found for each in family(child)]


def children(pid: int) -> list[int]:
    """Its children that live, whichever of its threads has started them."""
    found: list[int] = []
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (thread / "children").read_text(encoding="ascii").split())
    return sorted(found)


def send_signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
