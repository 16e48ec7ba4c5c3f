"""The `foliot` command as a user sees it: started for real, read line by line, always cleaned up.

Every wait is bounded and ends as soon as what it waits for is there.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from pathlib import Path
from typing import Any, Final, TypeVar

Found = TypeVar("Found")
Reply = tuple[int, dict[str, Any], Mapping[str, str]]

WITHIN_SECONDS: Final = 30.0
LAST_WORDS_SECONDS: Final = 5.0
POLLS_A_SECOND: Final = 50
LAST_LINE_OF_GREETING: Final = "Ctrl-C stops everything"


def eventually(
    look: Callable[[], Found | None], *, what: str, within_seconds: float = WITHIN_SECONDS
) -> Found:
    """The first answer of `look` that is neither None nor False."""
    pause = threading.Event()
    for _ in range(int(within_seconds * POLLS_A_SECOND)):
        found = look()
        if found is not None and found is not False:
            return found
        pause.wait(1 / POLLS_A_SECOND)
    raise AssertionError(f"not within {within_seconds:g} s: {what}")


def clean_environ(**changes: str) -> dict[str, str]:
    """The environment without settings of Foliot but these."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("FOLIOT_")}
    return kept | changes


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that ended and waits for its parent to notice does not."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except ProcessLookupError:
        return False
    except OSError:  # no /proc on this system, or the process ended meanwhile
        return Path("/proc/self").exists() is False
    return state != "Z"


def get(url: str, *, key: str | None = None) -> Reply:
    return ask("GET", url, key=key)


def post(url: str, body: object = None, *, key: str | None = None) -> Reply:
    return ask("POST", url, body, key=key)


def ask(method: str, url: str, body: object = None, *, key: str | None = None) -> Reply:
    """Status, JSON body and headers (names in small letters) of an answer, whatever its status."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    data = None if body is None else json.dumps(body).encode()
    if data is not None:
        headers["Content-Type"] = "application/json"
    request = urllib.request.Request(  # noqa: S310 - only ever our own http URLs
        url, data=data, headers=headers, method=method
    )
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310
            return answer.status, json.load(answer), _small(answer.headers)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, json.load(refused), _small(refused.headers)


def _small(headers: Message) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


class FoliotCommand:
    """One `foliot …` process in a process group of its own, as a terminal would start it."""

    def __init__(
        self,
        *arguments: str,
        environ: Mapping[str, str],
        **options: Any,  # noqa: ANN401 - Popen's
    ) -> None:
        self.lines: list[str] = []
        self._grown = threading.Condition()
        self._is_over = False
        self._process = subprocess.Popen(  # noqa: S603 - the test's own arguments
            [sys.executable, "-P", "-m", "foliot", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=dict(environ) | {"PYTHONUNBUFFERED": "1"},
            start_new_session=True,
            **options,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    def line_with(self, words: str, *, within_seconds: float = WITHIN_SECONDS) -> str:
        """The first line that holds `words`, as soon as it is printed."""

        def seek() -> str | None:
            return next((line for line in self.lines if words in line), None)

        with self._grown:
            self._grown.wait_for(lambda: seek() or self._is_over, timeout=within_seconds)
            found = seek()
        if found is None:
            raise AssertionError(f"no line with {words!r} in:\n{self.output}")
        return found

    def ended(self, *, within_seconds: float = WITHIN_SECONDS) -> int:
        """The exit status, once it and everything that writes to its output is gone."""
        status = self._process.wait(within_seconds)
        self._reader.join(within_seconds)
        return status

    def press_ctrl_c(self) -> None:
        """What a terminal does: SIGINT to the whole foreground group."""
        os.killpg(self.pid, signal.SIGINT)

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(WITHIN_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def close(self) -> None:
        self.stop()
        self._reader.join(LAST_WORDS_SECONDS)
        # While something that outlived the command holds its output open, closing would block.
        if self._process.stdout is not None and not self._reader.is_alive():
            self._process.stdout.close()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            with self._grown:
                self.lines.append(line.rstrip("\n"))
                self._grown.notify_all()
        with self._grown:
            self._is_over = True
            self._grown.notify_all()


@contextmanager
def foliot(
    *arguments: str,
    environ: Mapping[str, str] | None = None,
    **options: Any,  # noqa: ANN401 - Popen's
) -> Iterator[FoliotCommand]:
    command = FoliotCommand(*arguments, environ=environ or clean_environ(), **options)
    try:
        yield command
    finally:
        command.close()


class Ready:
    """A `foliot up` that has said it is ready."""

    def __init__(self, command: FoliotCommand, directory: Path) -> None:
        self.command = command
        self.directory = directory
        self._seen: set[int] = set()

    @property
    def facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = json.loads((self.directory / "server.json").read_text())
        return facts

    @property
    def url(self) -> str:
        return str(self.facts["url"])

    @property
    def pids(self) -> dict[str, int]:
        found = {role["role"]: role["pid"] for role in self.facts["roles"]}
        self._seen.update(found.values())
        return found

    def end_leftovers(self) -> None:
        """So that a test that fails leaves nothing behind either."""
        for pid in filter(is_alive, self._seen):
            os.kill(pid, signal.SIGKILL)

    def is_ready(self) -> bool:
        try:
            return get(f"{self.url}/readyz")[0] == 200
        except OSError:
            return False


@contextmanager
def foliot_up(
    directory: Path,
    *arguments: str,
    port: int = 0,
    environ: Mapping[str, str] | None = None,
    **options: Any,  # noqa: ANN401 - Popen's
) -> Iterator[Ready]:
    place = ["--data-dir", str(directory), "--port", str(port)]
    command = FoliotCommand("up", *place, *arguments, environ=environ or clean_environ(), **options)
    ready = Ready(command, directory)
    try:
        command.line_with(LAST_LINE_OF_GREETING)
        yield ready
    finally:
        command.stop()
        ready.end_leftovers()
        command.close()
