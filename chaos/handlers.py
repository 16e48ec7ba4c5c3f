"""What the jobs of a run do. Each attempt tells the sink "begun" before all else and "done" as the
last thing before it returns; the sink has it on disk before it answers.

The sink is outside of everything that is harmed: the address of its socket is in CHAOS_SINK. How
long an attempt takes follows from its execution's id, so it is the same in every run and attempt.
Given to `foliot worker run` as a file, it imports nothing of this package.
"""

# ruff: noqa: ARG001 - what a payload may hold is named, also if nobody looks at it

import asyncio
import json
import os
import signal
import socket
import time
from contextlib import suppress
from typing import Final

from foliot import App, Context, Snooze
from foliot.runtime.clock import sleep_thread

app = App()
SINK: Final = os.environ["CHAOS_SINK"]
LOOK_SECONDS: Final = 0.02


def record(context: Context, what: str) -> bytes:
    """One line for the sink."""
    known = {
        "execution_id": str(context.execution_id),
        "fence": context.fence,
        "attempt_number": context.attempt_number,
        "idempotency_key": context.idempotency_key,
        "what": what,
        "process": os.getpid(),
        "job": context.job_name,
    }
    return json.dumps(known).encode() + b"\n"


def check_answer(answer: bytes) -> None:
    if not answer.endswith(b"\n"):
        raise ConnectionError("the sink has not answered")


async def tell(context: Context, what: str) -> None:
    reader, writer = await asyncio.open_unix_connection(SINK)
    try:
        writer.write(record(context, what))
        check_answer(await reader.readline())
    finally:
        writer.close()


def tell_at_once(context: Context, what: str) -> None:
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(SINK)
        line.sendall(record(context, what))
        with line.makefile("rb") as answers:
            check_answer(answers.readline())


def share(context: Context) -> float:
    """From 0 to 1, by the end of the execution's id, which is a hash."""
    return int.from_bytes(context.execution_id.bytes[-4:]) / 2**32


def report(context: Context, what: str) -> None:
    """A line and how far it is, which name the fence of whoever says it."""
    context.logger.info("fence %d: %s", context.fence, what)
    context.progress(None, f"fence {context.fence}: {what}")


def pause() -> None:
    sleep_thread(LOOK_SECONDS)


@app.job
async def quick(context: Context, seconds: float = 0, request: str = "") -> None:
    """Takes up to `seconds`. `request` is only there to be found again, as in others."""
    await tell(context, "begun")
    await asyncio.sleep(seconds * share(context))
    await tell(context, "done")


@app.job
async def slow(context: Context, seconds: float = 1, user: str = "", request: str = "") -> str:
    """Takes half of `seconds` up to one and a half; stops when told. `user` is for a limit."""
    await tell(context, "begun")
    report(context, "begun")
    try:
        await asyncio.sleep(seconds * (0.5 + share(context)))
    except asyncio.CancelledError:
        await tell(context, "cancelled")
        raise
    report(context, "done")
    await tell(context, "done")
    return user


@app.job
def apart(context: Context, seconds: float = 0, request: str = "") -> None:
    """Takes up to `seconds`, in a process of its own; looks whether it was told to stop."""
    tell_at_once(context, "begun")
    report(context, "begun")
    end = time.monotonic() + seconds * share(context)
    while time.monotonic() < end:
        if context.cancelled:
            tell_at_once(context, "cancelled")
            return
        pause()
    report(context, "done")
    tell_at_once(context, "done")


@app.job
async def stumble(context: Context, failures: int, request: str = "") -> None:
    """Fails at its first `failures` attempts."""
    await tell(context, "begun")
    if context.attempt_number <= failures:
        await tell(context, "failing")
        raise ConnectionError(f"no answer at attempt {context.attempt_number}")
    await tell(context, "done")


@app.job
async def hang(context: Context) -> None:
    """Waits for ever, and stops when told."""
    await tell(context, "begun")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await tell(context, "cancelled")
        raise


@app.job(in_process=True)
async def deaf(context: Context, request: str = "") -> None:
    """Waits for ever, whatever it is told."""
    await tell(context, "begun")
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()


def end_process(way: str) -> None:
    if way == "exit":
        os._exit(3)
    os.kill(os.getpid(), signal.SIGSEGV)


@app.job
def poison(context: Context, way: str) -> None:
    """Ends the process that it has for itself."""
    tell_at_once(context, "begun")
    tell_at_once(context, "poison")
    end_process(way)


@app.job
async def poison_shared(context: Context, way: str) -> None:
    """Ends the process that it shares with others."""
    await tell(context, "begun")
    await tell(context, "poison")
    end_process(way)


@app.job
async def snooze(context: Context, snoozes: int, seconds: float) -> None:
    """Asks for later as long as it was claimed no more than `snoozes` times."""
    await tell(context, "begun")
    if context.fence <= snoozes:
        await tell(context, "snoozed")
        raise Snooze(seconds)
    await tell(context, "done")


@app.job
async def unstorable(context: Context, what: str) -> object:
    """Succeeds, and comes back with what no database keeps."""
    await tell(context, "begun")
    gifts: dict[str, object] = {
        "nul": "a\0b",
        "surrogate": {"text": "\ud800"},
        "not a number": float("nan"),
        "huge": "x" * 2_000_000,
    }
    await tell(context, "done")
    return gifts[what]
