"""Ask a server of ours one question over HTTP, without an HTTP library: is it ready?

Whether it can serve, that is: what is late when it starts is about to be done.
"""

import asyncio
import json
from typing import Final
from urllib.parse import urlsplit

ANSWER_WITHIN_SECONDS: Final = 3.0
PATH: Final = "/readyz?exclude=instants,leases,callbacks"


async def not_ready_because(url: str) -> str | None:
    """None once `url` can serve; until then what it lacks, in words."""
    try:
        async with asyncio.timeout(ANSWER_WITHIN_SECONDS):
            answer = await _get(url, PATH)
    except (OSError, asyncio.IncompleteReadError):
        return "it does not answer"
    head, _, body = answer.partition(b"\r\n\r\n")
    if b" 200 " in head.partition(b"\r\n")[0]:
        return None
    try:
        checks = json.loads(body)["checks"].values()
        return "; ".join(check["detail"] for check in checks if not check["ok"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return "it gives a strange answer"


async def _get(url: str, path: str) -> bytes:
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        writer.write(f"GET {path} HTTP/1.0\r\nHost: {parts.netloc}\r\n\r\n".encode())
        return await reader.read()
    finally:
        writer.close()
