"""Pages of a list, and the cursors that lead from one to the next.

A cursor is opaque: it holds the place where a page ended, and it is bound to its list and filters
by a checksum. One that was made up, cut short or taken to another list is refused.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from foliot.api.refusals import InvalidCursor

LIMIT_DEFAULT: Final = 50
LIMIT_MAX: Final = 1000
_CHECK_BYTES: Final = 6
# A name of 200 characters takes some 1,600.
CURSOR_CHARS_MAX: Final = 4000


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages of one list: which list it is, and with which filters it was asked for."""

    listing: str

    def cursor(self, place: Sequence[str | int | None]) -> str:
        written = json.dumps(list(place), separators=(",", ":"), ensure_ascii=False).encode()
        return base64.urlsafe_b64encode(self._check(written) + written).decode().rstrip("=")

    def place(self, cursor: str) -> list[Any]:
        """What `cursor` was made of, or InvalidCursor."""
        try:
            raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        except (ValueError, binascii.Error):
            raise InvalidCursor("is not a cursor") from None
        check, written = raw[:_CHECK_BYTES], raw[_CHECK_BYTES:]
        if check != self._check(written):
            raise InvalidCursor("is not a cursor of this list and these filters")
        place: list[Any] = json.loads(written)
        return place

    def _check(self, written: bytes) -> bytes:
        digest = hashlib.blake2b(digest_size=_CHECK_BYTES, person=b"foliot-cursor")
        digest.update(self.listing.encode() + b"\0" + written)
        return digest.digest()
