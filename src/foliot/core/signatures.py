"""Signatures of what is sent to others, by Standard Webhooks.

A message is signed together with its id and the time at which it was sent, under a key that sender
and receiver share. While a key is being replaced a message has a signature for each; one that fits
is enough. Who verifies gives the body as it came, byte for byte, and says what time it is.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from foliot.core.errors import FoliotError, InvalidInput

MESSAGE_ID: Final = "webhook-id"
TIMESTAMP: Final = "webhook-timestamp"
SIGNATURE: Final = "webhook-signature"

KEY_PREFIX: Final = "whsec_"
KEY_BYTES_MIN, KEY_BYTES_MAX = 24, 64
# How far the clocks of the two may be apart, and how long a message may have been on its way.
TOLERANCE_SECONDS: Final = 300.0
# More than any sender has keys; the work for a stranger's request is bounded.
SIGNATURES_MAX: Final = 16
_VERSION: Final = "v1,"
_MESSAGE_ID_CHARS_MAX: Final = 256
_SECONDS: Final = re.compile(r"[0-9]{1,12}")


@dataclass(eq=False)
class InvalidSignature(FoliotError):
    """Not from who holds the key, or not from now."""

    code: ClassVar[str] = "UNAUTHENTICATED"

    reason: str

    def __str__(self) -> str:
        return self.reason


def write_key(key: bytes) -> str:
    return KEY_PREFIX + base64.b64encode(key).decode()


def read_key(text: str, field: str = "key") -> bytes:
    """The refusal does not repeat the text."""
    if not text.startswith(KEY_PREFIX):
        raise InvalidInput(f"does not begin with {KEY_PREFIX}", field=field, hint=_HINT)
    try:
        key = base64.b64decode(text.removeprefix(KEY_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput("is not base64", field=field, hint=_HINT) from None
    if not KEY_BYTES_MIN <= len(key) <= KEY_BYTES_MAX:
        raise InvalidInput(f"has {len(key)} bytes", field=field, hint=_HINT)
    return key


_HINT: Final = f"{KEY_PREFIX} and {KEY_BYTES_MIN} to {KEY_BYTES_MAX} bytes in base64"


def sign(
    keys: Sequence[bytes], message_id: str, timestamp_seconds: int, body: bytes
) -> dict[str, str]:
    """The three headers. An id has no full stop: it parts what is signed."""
    if "." in message_id:
        raise ValueError(f"{message_id!r} has a full stop")
    signed = _signed(message_id, str(timestamp_seconds), body)
    return {
        MESSAGE_ID: message_id,
        TIMESTAMP: str(timestamp_seconds),
        SIGNATURE: " ".join(_signature(key, signed) for key in keys),
    }


def verify(
    keys: Sequence[bytes], headers: Mapping[str, str], body: bytes, now_seconds: float
) -> str:
    """The id of the message, or InvalidSignature. Names of headers are in small letters."""
    message_id, sent_at = headers.get(MESSAGE_ID, ""), headers.get(TIMESTAMP, "")
    given = headers.get(SIGNATURE, "").split()
    if not message_id or not sent_at or not given:
        raise InvalidSignature(f"{MESSAGE_ID}, {TIMESTAMP} and {SIGNATURE} are needed")
    if "." in message_id or len(message_id) > _MESSAGE_ID_CHARS_MAX:
        raise InvalidSignature(f"{MESSAGE_ID} is none")
    if not _SECONDS.fullmatch(sent_at):
        raise InvalidSignature(f"{TIMESTAMP} is not a number of seconds")
    if not _is_any(keys, _signed(message_id, sent_at, body), given[:SIGNATURES_MAX]):
        raise InvalidSignature("no signature fits: another key, or the body was changed")
    # Asked last: who does not hold the key learns nothing about the clock.
    behind = now_seconds - int(sent_at)
    if abs(behind) > TOLERANCE_SECONDS:
        where = "old" if behind > 0 else "ahead of this clock"
        raise InvalidSignature(
            f"the message is {abs(behind):.0f} s {where}, {TOLERANCE_SECONDS:.0f} s at the most"
        )
    return message_id


def _signed(message_id: str, sent_at: str, body: bytes) -> bytes:
    return f"{message_id}.{sent_at}.".encode() + body


def _signature(key: bytes, signed: bytes) -> str:
    return _VERSION + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def _is_any(keys: Sequence[bytes], signed: bytes, given: Sequence[str]) -> bool:
    """Every pair is compared, each in constant time."""
    fits = False
    for key in keys:
        ours = _signature(key, signed).encode()
        for theirs in given:
            fits |= hmac.compare_digest(ours, theirs.encode("utf-8", "replace"))
    return fits
