"""How a failure is written down: the contract's `error` object, always storable.

A message comes from somewhere else and may hold anything; what cannot be kept is replaced in it,
so that the type and the rest survive.
"""

from typing import Final

from foliot.core.model import Failure, Json
from foliot.core.storable import clean_text
from foliot.store.session import encode_json

MESSAGE_CHARS_MAX: Final = 8000
DETAIL_CHARS_MAX: Final = 1000


def failure_as_json(failure: Failure) -> dict[str, Json]:
    written: dict[str, Json] = {
        "type": str(failure.type),
        "message": clean_text(failure.message, MESSAGE_CHARS_MAX),
    }
    if failure.http_status is not None:
        written["http_status"] = failure.http_status
    if failure.detail is not None:
        written["detail"] = clean_text(failure.detail, DETAIL_CHARS_MAX)
    return written


def failure_as_text(failure: Failure | None) -> str | None:
    return None if failure is None else encode_json(failure_as_json(failure))
