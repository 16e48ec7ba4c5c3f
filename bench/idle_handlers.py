"""Handlers that do nothing, one of each kind; and one that does so for a while."""

import asyncio

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
