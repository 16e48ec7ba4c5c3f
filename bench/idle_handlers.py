"""Handlers that do nothing, one of each kind; one that does so for a while, one that tells when."""

import asyncio
import time

from foliot import App

app = App()


@app.job
async def on_loop() -> None: ...


@app.job
def in_process() -> None: ...


@app.job(in_process=True)
async def apart() -> None: ...


@app.job
async def nap(seconds: float) -> None:
    await asyncio.sleep(seconds)


@app.job
async def tell_time() -> float:
    """By the clock of the machine, which is also that of a database on it."""
    return time.time()
