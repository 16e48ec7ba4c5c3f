"""The answer to a call: its status decides, its body is a result and a preview, in bounds.

Of a body no more is read than can be kept, whatever its length claims to be: the rest is left
where it is, and the connection is closed over it. Nothing is decompressed.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final

import aiohttp
import msgspec

from foliot.core.model import ErrorType, Failure, Json
from foliot.core.retry import parse_retry_after
from foliot.worker.tasks import Ended, Failed, HandedOver, Succeeded

PREVIEW_BYTES: Final = 4096
RESULT_BYTES_MAX: Final = 256 * 1024
# To the end of a small body that nobody keeps: its connection can be used again.
READ_BYTES_MAX: Final = 64 * 1024
_PREVIEW_CHARS: Final = 1000
# What has no shape of its own, but tab and line breaks: as JSON each would take six bytes.
_CONTROLS: Final = {code: "\ufffd" for code in (*range(32), 127) if chr(code) not in "\t\n\r"}


class Answer:
    """As much of a response as has come. `body` is its beginning; `cut`: there was more."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.status = response.status
        self.body = bytearray()
        self.cut = False
        self._headers = response.headers
        self._is_json = _is_json(response.headers)
        self._response = response

    @property
    def is_success(self) -> bool:
        return 200 <= self.status <= 299

    async def read(self) -> None:
        """Raises what aiohttp raises."""
        has_result = self.is_success and self._is_json
        most = RESULT_BYTES_MAX if has_result else READ_BYTES_MAX
        keep = RESULT_BYTES_MAX if has_result else PREVIEW_BYTES
        size, content = 0, self._response.content
        while not content.at_eof():
            chunk = await content.readany()
            size += len(chunk)
            if len(self.body) < keep:
                self.body += chunk[: keep - len(self.body)]
            if size > most:
                self.cut = True
                self._response.close()
                return

    def end(self) -> Ended:
        """What the whole answer means."""
        if not self.is_success:
            return Failed(self._failure(), self.as_json())
        if self.status == HTTPStatus.ACCEPTED and self._says("X-Foliot-Async", "true"):
            return HandedOver()
        if not self._is_json:
            return Succeeded(response=self.as_json())
        if self.cut:
            return Succeeded(self._marker(), is_marker=True, response=self.as_json())
        return Succeeded(_parsed(bytes(self.body)), response=self.as_json())

    def as_json(self) -> Json:
        return {"http_status": self.status, "body_preview": self._preview(PREVIEW_BYTES)}

    def _preview(self, most: int) -> str:
        encoding = self._headers.get("Content-Encoding")
        if encoding and encoding.lower() != "identity" and self.body:
            return f"({encoding[:40]!r}, which was not asked for)"
        text = self.body[:most].decode("utf-8", errors="replace")
        return text if text.isprintable() else text.translate(_CONTROLS)

    def _says(self, header: str, word: str) -> bool:
        return self._headers.get(header, "").strip().lower() == word

    def _marker(self) -> Json:
        reason = f"larger than {RESULT_BYTES_MAX} bytes"
        preview = self._preview(_PREVIEW_CHARS)
        return {"foliot": "truncated", "reason": reason, "preview": preview}

    def _failure(self) -> Failure:
        message = f"the target answered {_words(self.status)}"
        if 300 <= self.status <= 399:
            message += "; redirects are not followed"
        return Failure(
            ErrorType.HTTP_ERROR,
            message,
            http_status=self.status,
            retry_after_seconds=self._retry_after(),
        )

    def _retry_after(self) -> float | None:
        """A time of day is meant by the target's own clock, which stands in `Date`."""
        header = self._headers.get("Retry-After")
        if header is None:
            return None
        now = _date(self._headers.get("Date", ""))
        if now is None:
            return parse_retry_after(header, _LONG_AFTER)
        return parse_retry_after(header, now)


# By this clock every time of day is over: without a clock to go by it says nothing.
_LONG_AFTER: Final = datetime.max.replace(tzinfo=UTC)


def _date(header: str) -> datetime | None:
    try:
        at = parsedate_to_datetime(header[:64])
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at


def _is_json(headers: Mapping[str, str]) -> bool:
    kind = headers.get("Content-Type", "").partition(";")[0].strip().lower()
    plain = headers.get("Content-Encoding", "identity").lower() == "identity"
    return plain and (kind == "application/json" or kind.endswith("+json"))


def _parsed(body: bytes) -> Json:
    """None where it is not the JSON that it says it is."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _words(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
