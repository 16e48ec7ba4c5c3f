"""Handlers that take their time, whatever they are told."""

# ruff: noqa: ASYNC240, ASYNC251, T201 - what these handlers do wrong is what is tested

import asyncio
import os
import socket
import time
from contextlib import suppress
from pathlib import Path

from foliot import App, Context

app = App()


@app.job
def spin() -> None:
    print("at it")
    while True:
        pass


@app.job
def listen_for_nobody() -> None:
    print("at it")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.accept()


@app.job
def sleep_in_c() -> None:
    print("at it")
    time.sleep(1000)


@app.job
def hold_the_gil() -> None:
    print("at it")
    sum(range(10**15))


@app.job
async def sleep_on_loop() -> None:
    print("at it")
    time.sleep(1000)


@app.job
async def spin_on_loop() -> None:
    print("at it")
    while True:
        pass


@app.job
async def swallow() -> None:
    print("at it")
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()


@app.job(in_process=True)
async def swallow_apart() -> None:
    await swallow()


@app.job(thread=True)
def sleep_in_thread() -> None:
    print("at it")
    time.sleep(1000)


@app.job
async def wait() -> None:
    print("waiting")
    try:
        await asyncio.Event().wait()
    finally:
        print("tidied up")


@app.job
def look(context: Context) -> None:
    print("looking")
    while not context.cancelled:
        time.sleep(0.001)
    print("seen")


@app.job(thread=True)
def look_in_thread(context: Context) -> None:
    print("looking")
    while not context.cancelled:
        time.sleep(0.001)


@app.job
async def succeed_late() -> str:
    print("waiting")
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    return "done all the same"


@app.job
async def fail_late() -> None:
    print("waiting")
    try:
        await asyncio.Event().wait()
    finally:
        raise ValueError("in passing")


@app.job
async def keep_the_loop(path: str) -> None:
    """Stands still, and the loop with it, until the file is there."""
    print("keeping it")
    while not Path(path).exists():
        time.sleep(0.01)


@app.job
async def nothing() -> None: ...


@app.job
async def pid() -> int:
    return os.getpid()


@app.job
def nothing_sync() -> None: ...
