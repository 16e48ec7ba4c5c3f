"""Handlers that harm the process they run in."""

# ruff: noqa: PLE0307, T201 - what these handlers do wrong is what is tested

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress

from foliot import App

app = App()


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")

    __repr__ = __str__


class Unending(BaseException):
    def __str__(self) -> str:
        sys.exit(7)


def recurse() -> None:
    recurse()


def exhaust() -> None:
    _ = [b"x" * (1 << 60)]


def raise_unspeakable() -> None:
    raise Unspeakable


def raise_unending() -> None:
    raise Unending


def interrupt() -> None:
    raise KeyboardInterrupt


def exit_politely() -> None:
    sys.exit("enough")


def exit_at_once() -> None:
    os._exit(3)


def segfault() -> None:
    ctypes.string_at(0)


def abort() -> None:
    os.abort()


def kill_itself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_its_parent() -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    signal.pause()


def close_everything() -> None:
    os.closerange(3, 1000)


def close_everything_and_stay() -> None:
    close_everything()
    signal.pause()


def come_back_twice() -> None:
    os.fork()


POISONS: dict[str, Callable[[], None]] = {
    one.__name__: one
    for one in (
        recurse,
        exhaust,
        raise_unspeakable,
        raise_unending,
        interrupt,
        exit_politely,
        exit_at_once,
        segfault,
        abort,
        kill_itself,
        kill_its_parent,
        close_everything,
        close_everything_and_stay,
        come_back_twice,
    )
}


@app.job
def take(poison: str) -> None:
    sys.stdout.write("taking it")  # and no end of the line
    POISONS[poison]()


@app.job
async def take_on_loop(poison: str) -> None:
    await asyncio.sleep(0)
    print("taking it")
    POISONS[poison]()


@app.job
async def take_in_task(poison: str) -> None:
    await asyncio.create_task(take_on_loop(poison))


@app.job
def fork_much(count: int) -> None:
    for _ in range(count):
        if os.fork() == 0:
            signal.pause()
    print("forked")
    signal.pause()


@app.job
def pour(megabytes: int) -> None:
    subprocess.run(["/usr/bin/head", "-c", f"{megabytes}M", "/dev/zero"], check=True)
    print("\nthe end")


@app.job
def print_much(lines: int) -> None:
    for _ in range(lines):
        print("x" * 1000)


@app.job
async def print_much_on_loop(lines: int) -> None:
    for _ in range(lines):
        print("x" * 1000)
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)


@app.job
async def wait() -> None:
    print("waiting")
    await asyncio.Event().wait()


@app.job
async def nothing() -> None: ...


@app.job
def nothing_sync() -> None: ...
