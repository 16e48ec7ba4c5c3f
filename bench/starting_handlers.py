"""Handlers that say when they began, by the clock that all processes of a machine share."""

import asyncio
import time

from foliot import App, Context

app = App()


@app.job
async def tell() -> float:
    return time.monotonic()


@app.job
async def hold() -> list[float]:
    """Long enough for another to come and wait; tells when it began and ended."""
    began = time.monotonic()
    await asyncio.sleep(0.3)
    return [began, time.monotonic()]


@app.job
async def linger(context: Context) -> None:
    """Until it is cancelled; logs when."""
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        context.logger.info("%.6f", time.monotonic())
        raise
