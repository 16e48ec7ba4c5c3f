"""The request of an attempt: the job's own headers, ours, and the payload as the body."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from uuid import UUID

import msgspec

from foliot import __version__
from foliot.core.model import HttpTarget, Json
from foliot.worker.tasks import Task

# Whoever wants to sign a request: the headers to add, from the attempt and the body as it is sent.
Sign = Callable[[Task, bytes], Mapping[str, str]]
# By whose request it is; None where nothing is signed.
SignFor = Callable[[UUID], Awaitable[Sign | None]]

BODILESS: Final = frozenset({"GET", "HEAD"})
_JSON: Final = "application/json"
_SPAN: Final = (1 << 64) - 1
_ENCODING: Final = "accept-encoding"
_USER_AGENT: Final = f"Foliot/{__version__}"


def body_of(task: Task, target: HttpTarget) -> bytes:
    """The payload as JSON. Text goes as it is where the job says that it is something else."""
    if task.payload is None or target.method.upper() in BODILESS:
        return b""
    if isinstance(task.payload, str) and not _sends_json(target):
        return task.payload.encode()
    return _encode(task.payload)


def headers_of(task: Task, target: HttpTarget, body: bytes, sign: Sign | None) -> dict[str, str]:
    """Nothing compressed comes back: a few bytes could become millions."""
    headers = {
        "User-Agent": _USER_AGENT,
        "Accept": "*/*",
        "X-Idempotency-Key": task.idempotency_key,
        "X-Execution-ID": str(task.execution_id),
        "X-Job-ID": str(task.job_id),
        "X-Attempt-Number": str(task.attempt_number),
        "X-Fencing-Token": str(task.fence),
        "X-Foliot-Timeout": f"{task.timeout_seconds:g}",
        "traceparent": traceparent_of(task),
    }
    if body:
        headers["Content-Type"] = _JSON
    if target.headers:
        headers = _with_the_jobs(headers, target.headers)
    headers["Accept-Encoding"] = "identity"
    if sign is not None:
        headers.update(sign(task, body))
    return headers


def _with_the_jobs(ours: dict[str, str], jobs: Mapping[str, str]) -> dict[str, str]:
    """Its own win, in whatever case they are written: those that it must not set are refused."""
    taken = {name.lower() for name in jobs}
    merged = {name: value for name, value in ours.items() if name.lower() not in taken}
    merged.update((name, value) for name, value in jobs.items() if name.lower() != _ENCODING)
    return merged


def traceparent_of(task: Task) -> str:
    """Of the trace that the execution was asked for in, or else of one that is its own."""
    trace_id = task.trace_id or task.execution_id.hex
    span_id = (task.execution_id.int + task.fence) & _SPAN or 1
    return f"00-{trace_id}-{span_id:016x}-01"


def _sends_json(target: HttpTarget) -> bool:
    types = [value for name, value in target.headers.items() if name.lower() == "content-type"]
    return not types or "json" in types[0].lower()


def _encode(payload: Json) -> bytes:
    return msgspec.json.encode(payload)
