"""Handlers that tell everybody the secrets they were given."""

# ruff: noqa: T201 - what these handlers do is what is tested

import base64
import json
import logging
import os
import subprocess
import sys
from urllib.parse import quote

from foliot import App, Context

app = App()
log = logging.getLogger("gossip")


class Indiscretion(Exception):
    """Raised with everything it knows."""


def spread(secret: str, context: Context) -> list[str]:
    if "FOLIOT_SECRET_KEYS" in os.environ:
        raise RuntimeError("handlers know the keys")
    ways = [
        secret,
        json.dumps(secret),
        quote(secret),
        repr(secret),
        repr(secret.encode()),
        base64.b64encode(secret.encode()).decode(),
        base64.b64encode(f"user:{secret}".encode()).decode(),
        secret.encode().hex(),
    ]
    for way in ways:
        print(f"printed: {way}")
        print(f"to stderr: {way}", file=sys.stderr)
        log.warning("logged: %s", way)
    # In two pieces, and at the end of a line that is cut.
    print(secret[:5], end="")
    print(secret[5:])
    filler = 16 * 1024 - 8 - len(secret) + 1
    print("x" * filler + secret + "y" * 100)
    log.info("%s%s", "x" * (16 * 1024 - len(secret) + 1), secret)
    context.progress(50, f"progress: {secret}")
    return ways


@app.job
async def tell(secret: str, context: Context) -> dict[str, object]:
    ways = spread(secret, context)
    return {secret: ways, "said": f"the secret is {secret}", "large": "z" * 10 + secret}


@app.job
def tell_sync(secret: str, context: Context) -> list[str]:
    subprocess.run([sys.executable, "-c", "print(input())"], input=secret, text=True, check=True)
    return spread(secret, context)


@app.job
async def fail(secret: str, context: Context) -> None:
    spread(secret, context)
    raise Indiscretion("x" * (8000 - len("Indiscretion: ") - 12) + secret)


@app.job
def fail_sync(secret: str, context: Context) -> None:
    spread(secret, context)
    raise Indiscretion(secret, {"key": secret.encode()})


@app.job
async def tell_too_much(secret: str) -> list[str]:
    """More than is kept of a result."""
    return [secret] * 100_000


@app.job
async def tell_wrongly(secret: str) -> dict[str, object]:
    """What is no JSON is named by its place."""
    return {secret: object()}


@app.job
async def refuse(secret: int) -> None:
    """A payload that does not fit: the refusal may show it."""
