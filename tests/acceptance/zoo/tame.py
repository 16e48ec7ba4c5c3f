"""Handlers that do as they are told."""

# ruff: noqa: S606, T201 - what these handlers do is what is tested

import asyncio
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import datetime

from foliot import App, Context, DoNotRetry, Snooze

app = App()
meeting: dict[str, asyncio.Event] = {}
log = logging.getLogger("tame")


@app.job
async def add(a: int, b: int) -> int:
    return a + b


@app.job
def add_sync(a: int, b: int) -> int:
    return a + b


@app.job
async def meet(name: str, other: str) -> int:
    """Returns when the other one is there too: both must run at the same time, in one process."""
    meeting.setdefault(name, asyncio.Event()).set()
    await meeting.setdefault(other, asyncio.Event()).wait()
    return os.getpid()


@app.job
def pid() -> int:
    return os.getpid()


@app.job
async def pid_on_loop() -> int:
    return os.getpid()


@app.job(in_process=True)
async def pid_apart() -> int:
    await asyncio.sleep(0)
    return os.getpid()


@app.job(thread=True)
def in_thread(context: Context) -> list[object]:
    print("from a thread")
    return [os.getpid(), threading.current_thread() is threading.main_thread(), context.cancelled]


@app.job
async def facts(at: datetime, context: Context) -> dict[str, object]:
    context.progress(50, "half")
    return {
        "year": at.year,
        "job_name": context.job_name,
        "attempt_number": context.attempt_number,
        "key": context.idempotency_key,
        "fence": context.fence,
        "has_time": 0 < context.deadline_seconds <= 20,
    }


@app.job
def talk_sync() -> None:
    print("printed")
    print("to stderr", file=sys.stderr)
    log.info("logged %d", 1)
    subprocess.run(["/bin/sh", "-c", "echo from a child; echo its error >&2"], check=True)
    os.write(1, b"by descriptor\nhalf a line")


@app.job
async def talk(name: str, other: str) -> None:
    print(f"{name} prints")
    await meet(name, other)
    print(f"{name} prints", "again", end="")
    log.warning("%s logs", name)
    await asyncio.create_task(talk_in_task(name))
    await asyncio.to_thread(print, f"{name} prints in a thread")
    if name == "fails":
        raise ValueError("as agreed")


async def talk_in_task(name: str) -> None:
    print(f"\n{name} prints in a task")


@app.job
async def show(text: str) -> None:
    """Output that a database cannot keep."""
    sys.stdout.write(f"{text}\n")
    log.info(text)


@app.job
def show_sync(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    log.info(text)


@app.job
async def show_half(context: Context) -> None:
    """Half of a surrogate pair: JSON has none, so no payload brings it."""
    await show("a\ud800b")
    context.progress(None, "a\ud800b")


@app.job
def show_half_sync(context: Context) -> None:
    show_sync("a\ud800b")
    context.progress(None, "a\ud800b")


@app.job
async def say_and_wait(words: str) -> None:
    print(words)
    await asyncio.Event().wait()


@app.job
async def give_up() -> None:
    raise DoNotRetry("the account is closed")


@app.job
def later(seconds: float) -> None:
    raise Snooze(seconds)


@app.job
async def give(what: str) -> object:
    gifts: dict[str, object] = {
        "set": {"deep": [1, {2}]},
        "key": {1: "x"},
        "surrogate": {"text": "\ud800"},
        "nul": "a\0b",
        "nan": float("nan"),
        "huge": "x" * 9_000_000,
        "number": 10**30,
        "cycle": cycle(),
        "tuple": (1, 2),
        "enum": signal.SIGTERM,
    }
    return gifts[what]


def cycle() -> list[object]:
    ring: list[object] = []
    ring.append(ring)
    return ring


@app.job
def surroundings() -> list[object]:
    named = [name for name in os.environ if name.startswith(("FOLIOT_DATABASE", "FOLIOT_SECRET"))]
    return [signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN, named]


@app.job
def leave_a_child() -> int:
    return subprocess.Popen(["/bin/sleep", "1000"]).pid


@app.job
def work_with_a_daemon(context: Context) -> None:
    print(f"it is {start_a_daemon()}")
    while not context.cancelled:
        time.sleep(0.001)


@app.job
def start_a_daemon() -> int:
    """Forks twice, with a session of its own in between: the way to get away."""
    read_fd, write_fd = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(write_fd, str(os.getpid()).encode())
            os.execv("/bin/sleep", ["sleep", "1000"])
        os._exit(0)
    return int(os.read(read_fd, 100))
