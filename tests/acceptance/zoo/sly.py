"""Handlers that harm others in ways that nobody sees coming."""

# ruff: noqa: T201 - what these handlers do wrong is what is tested

import asyncio
import multiprocessing
import os
import resource
import signal
import subprocess
import threading
from typing import Any

from foliot import App, Context, Snooze

app = App()


class _Nameless(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise ValueError("no name")


class NamelessError(Exception, metaclass=_Nameless): ...


class Money(float): ...


@app.job
async def wait() -> None:
    print("waiting")
    await asyncio.Event().wait()


@app.job
async def nothing() -> None: ...


@app.job
def nothing_sync() -> None: ...


@app.job
def talk_in_threads(context: Context) -> str:
    """Every word is longer than what a socket takes in one piece."""
    words = "🦉" * 16_000

    def log() -> None:
        for _ in range(100):
            context.logger.info(words)

    def step() -> None:
        for _ in range(2000):
            context.progress(50, words)

    threads = [threading.Thread(target=one) for one in (log, step, step)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return "x" * 200_000


@app.job
async def snooze_beyond_all_numbers() -> None:
    raise Snooze(10**400)


@app.job
async def raise_a_nameless_error() -> None:
    raise NamelessError


@app.job(thread=True)
def exhaust_an_iterator() -> Any:  # noqa: ANN401 - nothing comes of it
    return next(iter(()))


@app.job
def leave_a_child_and_kill_its_parent() -> None:
    subprocess.Popen(["sleep", "1000"])
    os.kill(os.getppid(), signal.SIGKILL)
    signal.pause()


@app.job
def stop_its_parent() -> None:
    os.kill(os.getppid(), signal.SIGSTOP)
    signal.pause()


@app.job
def leave_a_child_of_a_thread() -> int:
    found: list[int] = []
    started = threading.Event()

    def start() -> None:
        found.append(subprocess.Popen(["sleep", "1000"]).pid)
        started.set()
        threading.Event().wait()

    threading.Thread(target=start, daemon=True).start()
    started.wait()
    return found[0]


@app.job
async def step_much(context: Context) -> int:
    """How many bytes it takes to tell a great many steps without a pause."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for n in range(300_000):
        context.progress(n % 100, f"step {n}")
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024


@app.job
async def give_money() -> list[Money]:
    return [Money(1.5)]


@app.job
async def give_too_much() -> str:
    return "x" * 2_000_000


@app.job
def wait_sync() -> None:
    print("waiting")
    threading.Event().wait()


@app.job
def terminate_a_child() -> int | None:
    child = multiprocessing.get_context("fork").Process(target=signal.pause)
    child.start()
    child.terminate()
    child.join(5)
    return child.exitcode


@app.job
async def stop_the_loop() -> None:
    asyncio.get_running_loop().stop()
    await asyncio.Event().wait()


@app.job
async def cancel_everybody() -> None:
    for task in asyncio.all_tasks():
        task.cancel()
    await asyncio.Event().wait()


@app.job
def print_nothing_much() -> None:
    """Twenty million lines without a word."""
    for _ in range(300):
        os.write(1, b"\n" * 65_536)


@app.job
async def wait_for_a_process() -> None:
    process = await asyncio.create_subprocess_exec("sleep", "1000")
    print(f"it is {process.pid}")
    await process.wait()
