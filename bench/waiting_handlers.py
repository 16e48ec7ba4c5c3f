"""A handler that waits at a gate, however many of it there are: the file that BENCH_GATE names."""

import asyncio
import os
from pathlib import Path

from foliot import App

app = App()
_looking: list[asyncio.Task[None]] = []


@app.job
async def wait_at_gate() -> None:
    """All that wait in one process share one look at it."""
    if not _looking:
        _looking.append(asyncio.create_task(_look()))
    await asyncio.shield(_looking[0])


async def _look() -> None:
    gate = Path(os.environ["BENCH_GATE"])
    while not gate.exists():  # noqa: ASYNC110, ASYNC240 - of a file
        await asyncio.sleep(0.1)
