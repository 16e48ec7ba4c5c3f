"""Who is let through, whatever the server's protocol: decided from headers and body alone."""

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from foliot.core.errors import InvalidInput
from foliot.core.signatures import (
    MESSAGE_ID,
    SIGNATURE,
    TIMESTAMP,
    InvalidSignature,
    read_key,
    verify,
)
from foliot.receiver.calls import Call, Done, InFlight, Stale, Verdict

BODY_BYTES_MAX: Final = 4 * 1024 * 1024
IDEMPOTENCY_KEY: Final = "x-idempotency-key"
EXECUTION_ID: Final = "x-execution-id"
FENCE: Final = "x-fencing-token"
ASYNC: Final = "x-foliot-async"
# Each of them counts, so none may be there twice.
HEADERS: Final = frozenset({MESSAGE_ID, TIMESTAMP, SIGNATURE, IDEMPOTENCY_KEY, EXECUTION_ID, FENCE})
RETRY_SECONDS: Final = 5
_EXECUTION_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FENCE: Final = re.compile(r"[0-9]{1,10}")
_KEY_CHARS_MAX: Final = 1000
_KNOWN: Final = frozenset(int(status) for status in HTTPStatus)

Now = Callable[[], float]
WALL_CLOCK: Final[Now] = time.time


@dataclass(frozen=True, slots=True)
class Reply:
    """What the door itself answers."""

    status: HTTPStatus
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    def all_headers(self) -> list[tuple[str, str]]:
        told = {"Content-Length": str(len(self.body)), **self.headers}
        if self.body:
            told["Content-Type"] = "application/json"
        return list(told.items())


class Door:
    """`keys` are those of the sender, `whsec_…`: while one is being replaced, both."""

    def __init__(self, keys: Sequence[str], body_bytes_max: int, now: Now) -> None:
        if isinstance(keys, str) or not keys:
            raise InvalidInput("is no list of keys", field="keys", hint='give ["whsec_…"]')
        self._keys = [read_key(key, f"keys[{n}]") for n, key in enumerate(keys)]
        self.body_bytes_max = body_bytes_max
        self.now = now

    def read(self, headers: Mapping[str, str], body: bytes) -> Call | Reply:
        """The callback, if it is one. Names of headers are in small letters."""
        try:
            message_id = verify(self._keys, headers, body, self.now())
        except InvalidSignature as refused:
            return refusal(HTTPStatus.UNAUTHORIZED, refused.code, str(refused))
        execution_id, fence = headers.get(EXECUTION_ID, ""), headers.get(FENCE, "")
        key = headers.get(IDEMPOTENCY_KEY, "")
        if not 0 < len(key) <= _KEY_CHARS_MAX or not _FENCE.fullmatch(fence):
            words = "X-Idempotency-Key and X-Fencing-Token are needed"
            return refusal(HTTPStatus.BAD_REQUEST, "VALIDATION_ERROR", words)
        # Only the id is signed: what is said beside it must be about the same execution.
        of_it = f"{message_id}-".startswith(f"{execution_id}-")
        if not of_it or not _EXECUTION_ID.fullmatch(execution_id):
            words = f"X-Execution-ID is not that of the {MESSAGE_ID}"
            return refusal(HTTPStatus.BAD_REQUEST, "VALIDATION_ERROR", words)
        return Call(tuple(dict.fromkeys((key, message_id))), execution_id, int(fence))

    def too_large(self) -> Reply:
        words = f"the body is larger than {self.body_bytes_max} bytes"
        return refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "PAYLOAD_TOO_LARGE", words)


def reply_to(verdict: Verdict, call: Call) -> Reply | None:
    """None: the application is asked."""
    match verdict:
        case Done(status):
            return Reply(HTTPStatus(status))
        case InFlight():
            # A status that the sender repeats: another try may find it done, or failed.
            words = "the same work is under way"
            wait = {"Retry-After": str(RETRY_SECONDS)}
            return refusal(HTTPStatus.TOO_MANY_REQUESTS, "IDEMPOTENCY_IN_FLIGHT", words, wait)
        case Stale(fence):
            words = f"fence {call.fence} of execution {call.execution_id} was replaced by {fence}"
            return refusal(HTTPStatus.CONFLICT, "SUPERSEDED", words)
        case _:
            return None


def status_to_keep(status: int | None, headers: Mapping[str, str]) -> int | None:
    """None: it is not done. One that was taken over for later is not, either."""
    if status is None or not 200 <= status <= 299:
        return None
    if status == HTTPStatus.ACCEPTED and headers.get(ASYNC, "").strip().lower() == "true":
        return None
    return status if status in _KNOWN else int(HTTPStatus.OK)


def refusal(
    status: HTTPStatus, code: str, message: str, headers: Mapping[str, str] | None = None
) -> Reply:
    body = json.dumps({"error": {"code": code, "message": message}}).encode()
    return Reply(status, body, headers or {})
