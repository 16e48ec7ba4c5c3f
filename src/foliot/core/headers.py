"""Headers that a job adds to its callback: checked so that none can change the request around it.

Names that speak about the connection and names that Foliot sets are not for the job. Checked when
the job is saved, and again when `${secrets.NAME}` in a value has become what it hides.
"""

import re
from collections.abc import Mapping
from typing import Final

from foliot.core.errors import InvalidInput

COUNT_MAX: Final = 100
NAME_CHARS_MAX: Final = 200
VALUE_CHARS_MAX: Final = 8000
# Together; many servers take 16 KiB of headers, and ours come on top.
BYTES_MAX: Final = 12_288

_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")
_OF_THE_CONNECTION: Final = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_SET_BY_US: Final = frozenset(
    {
        "traceparent",
        "x-attempt-number",
        "x-execution-id",
        "x-fencing-token",
        "x-idempotency-key",
        "x-job-id",
    }
)


def check_headers(headers: Mapping[str, str], field: str) -> None:
    """Raises InvalidInput that names the header: `target.headers.X-Colour`."""
    if len(headers) > COUNT_MAX:
        raise InvalidInput(
            f"has {len(headers)} headers", field=field, hint=f"at most {COUNT_MAX} are sent"
        )
    seen: set[str] = set()
    for name, value in headers.items():
        _check_name(name, field)
        if name.lower() in seen:
            raise InvalidInput(
                "is there twice, in another case", field=f"{field}.{name}", hint="keep one"
            )
        seen.add(name.lower())
        _check_value(value, f"{field}.{name}")
    size = sum(len(name) + len(value.encode()) + 4 for name, value in headers.items())
    if size > BYTES_MAX:
        raise InvalidInput(
            f"is {size} bytes in all",
            field=field,
            hint=f"at most {BYTES_MAX} are sent; more belongs in the payload",
        )


def _check_name(name: str, field: str) -> None:
    if len(name) > NAME_CHARS_MAX or not _TOKEN.fullmatch(name):
        raise InvalidInput(
            f"{name[:80]!r} is no name of a header",
            field=field,
            hint=f"use letters, digits and hyphens, at most {NAME_CHARS_MAX}",
        )
    lower = name.lower()
    if lower in _OF_THE_CONNECTION or lower.startswith("proxy-"):
        raise InvalidInput(
            "is about the connection and not for a job",
            field=f"{field}.{name}",
            hint="leave it out",
        )
    if lower in _SET_BY_US or lower.startswith(("webhook-", "x-foliot-")):
        raise InvalidInput("is set by Foliot", field=f"{field}.{name}", hint="leave it out")


def _check_value(value: str, field: str) -> None:
    if len(value) > VALUE_CHARS_MAX:
        raise InvalidInput(
            f"has more than {VALUE_CHARS_MAX} characters",
            field=field,
            hint="send it in the payload",
        )
    if _CONTROL.search(value):
        raise InvalidInput(
            "has a line break or another control character", field=field, hint="remove it"
        )
