"""Optimistic locking: whoever changes a job may say which version they have seen.

A job's ETag is its version. `If-Match` or `version` in the body asks that it be the current one.
"""

import re
from typing import Final

from fastapi import Request

from foliot.core.errors import InvalidInput

_TAG: Final = re.compile(r'(?:W/)?"?([1-9]\d{0,9})"?')


def etag(version: int) -> str:
    return f'"{version}"'


def expected_version(request: Request, in_body: int | None) -> int | None:
    """The version that the caller has seen, if they say so; `*` stands for any."""
    header = request.headers.get("if-match", "").strip()
    if header in ("", "*"):
        return in_body
    match = _TAG.fullmatch(header)
    if match is None:
        raise InvalidInput(f"{header[:40]} is not a version", field="If-Match", hint='like "3"')
    told = int(match[1])
    if in_body not in (None, told):
        raise InvalidInput("is not the version of If-Match", field="version", hint="give one")
    return told


def is_conditional(request: Request, in_body: int | None) -> bool:
    return in_body is not None or bool(request.headers.get("if-match", "").strip())
