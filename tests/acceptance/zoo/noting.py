"""Handlers that note what they do where no crash can take it back."""

import asyncio
import json
import os
import time
from pathlib import Path

from foliot import App, Context

app = App()
EFFECTS = Path(os.environ["EFFECTS_FILE"])


def note(context: Context, what: str) -> None:
    """One short write to the end of the file: lines of several processes never mix."""
    known = (str(context.execution_id), context.fence, context.attempt_number, what, os.getpid())
    file = os.open(EFFECTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, json.dumps(known).encode() + b"\n")
    finally:
        os.close(file)


@app.job
async def work(context: Context, seconds: float = 0) -> None:
    note(context, "begun")
    await asyncio.sleep(seconds)
    note(context, "done")


@app.job
def work_apart(context: Context, seconds: float = 0) -> None:
    note(context, "begun")
    if seconds:  # where libfaketime is, a sleep of none fails
        time.sleep(seconds)
    note(context, "done")


@app.job
async def stumble(context: Context, failures: int) -> None:
    note(context, "begun")
    if context.attempt_number <= failures:
        raise ConnectionError(f"no answer at attempt {context.attempt_number}")
    note(context, "done")


@app.job
async def hang(context: Context) -> None:
    note(context, "begun")
    await asyncio.Event().wait()
