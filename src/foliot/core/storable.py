"""Which values a database can keep: checked at the door, made keepable where a state must change.

A payload that cannot be kept is refused with the place named. A result or an error cannot be: the
work is done, so what cannot be kept becomes a marker that says why. Sizes are looked at before
anything is copied, and no method of the value is called: neither a gigabyte nor a hostile class
costs more than the bytes that are allowed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from json.encoder import encode_basestring  # what json.dumps does to a string, without ensure_ascii
from math import isfinite
from typing import Any, Final

from foliot.core.errors import InvalidInput, PayloadTooLarge

# Deeper than people write by hand; it also ends a value that contains itself.
DEPTH_MAX: Final = 32
# jsonb would keep more digits, but few languages read them back: as text they arrive everywhere.
INTEGER_MIN, INTEGER_MAX = -(2**63), 2**63 - 1
PREVIEW_CHARS: Final = 1000
# Of the result of an attempt; also said to who returns more.
RESULT_BYTES_MAX: Final = 256 * 1024
# A marker needs this much room even where less is allowed.
MARKER_BYTES_MAX: Final = 1024
_WORDS_CHARS: Final = 80


@dataclass(frozen=True, slots=True)
class Storable:
    """JSON text that PostgreSQL takes as jsonb; `truncated` if it is not the whole value."""

    text: str
    truncated: bool = False


@dataclass(eq=False)
class _Unstorable(Exception):
    reason: str
    hint: str
    too_large: bool = False
    path: list[str] = field(default_factory=list)  # from the inside out

    def place(self) -> str:
        return "".join(reversed(self.path))


def check_storable(value: object, name: str, max_bytes: int) -> str:
    """The JSON text of `value`, or InvalidInput that names the place: `payload.items[3].note`."""
    writer = _Writer(max_bytes)
    try:
        writer.write(value, 0)
    except _Unstorable as refusal:
        place = clean_text(name + refusal.place(), 4 * _WORDS_CHARS)
        refused = PayloadTooLarge if refusal.too_large else InvalidInput
        raise refused(refusal.reason, field=place, hint=refusal.hint) from None
    return "".join(writer.parts)


def to_storable(value: object, max_bytes: int) -> Storable:
    """`value` as JSON text, or a marker that says why it is not; takes any object, never raises.

    The text is at most `max_bytes` long, or `MARKER_BYTES_MAX` where that is more.
    """
    writer = _Writer(max_bytes)
    try:
        writer.write(value, 0)
    except _Unstorable as refusal:
        if refusal.too_large:
            return Storable(_marker("truncated", refusal, writer.preview(max_bytes)), True)
        return Storable(_marker("unstorable", refusal), True)
    except Exception:  # noqa: BLE001 - a dict that changes while it is read, memory that runs out
        return Storable(_marker("unstorable", _Unstorable("it cannot be read", "")), True)
    return Storable("".join(writer.parts))


def clean_text(text: str, max_chars: int) -> str:
    """The beginning of `text`, with what PostgreSQL cannot keep replaced by U+FFFD."""
    short = str.__getitem__(text, slice(max_chars)).replace("\0", "\ufffd")
    return short.encode("utf-8", errors="surrogatepass").decode("utf-8", errors="replace")


class _Writer:
    """Writes JSON piece by piece and stops at the first byte too many."""

    def __init__(self, max_bytes: int) -> None:
        self.parts: list[str] = []
        self._max_bytes = max_bytes
        self._left = max_bytes

    def preview(self, max_bytes: int) -> str:
        """What was written before it became too much; four bytes a character at the most."""
        chars = min(PREVIEW_CHARS, max(0, max_bytes - MARKER_BYTES_MAX) // 4)
        found: list[str] = []
        for part in self.parts:
            if chars <= 0:
                break
            found.append(part[:chars])
            chars -= len(part)
        return "".join(found)

    def write(self, value: object, depth: int) -> None:
        kind = type(value)
        if value is None:
            self._put("null")
        elif kind is bool:
            self._put("true" if value else "false")
        elif issubclass(kind, str):
            self._string(value)
        elif issubclass(kind, int):
            self._integer(value)
        elif issubclass(kind, float):
            self._float(value)
        elif issubclass(kind, dict | list | tuple):
            if depth >= DEPTH_MAX:
                raise _Unstorable(f"nested deeper than {DEPTH_MAX}", "flatten it")
            (self._object if issubclass(kind, dict) else self._array)(value, depth + 1)
        else:
            name = clean_text(type.__getattribute__(kind, "__name__"), 40)
            raise _Unstorable(
                f"{name} is not JSON", "use text, numbers, booleans, null, lists and objects"
            )

    def _put(self, text: str, extra_bytes: int = 0) -> None:
        """`text` of ASCII characters."""
        self._spend(len(text) + extra_bytes)
        self.parts.append(text)

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise _Unstorable(
                f"larger than {self._max_bytes} bytes",
                "store it elsewhere and pass its address",
                too_large=True,
            )

    def _string(self, value: Any) -> None:  # noqa: ANN401 - a str of any subclass
        # Each character is at least one byte: too long is known before anything is copied.
        if str.__len__(value) + 2 > self._left:
            self.parts.append(encode_basestring(clean_text(value, PREVIEW_CHARS)))
            self._spend(str.__len__(value) + 2)
        text: str = str.__str__(value)
        if "\0" in text:
            raise _Unstorable("has a NUL character", "remove it, or encode the bytes as base64")
        try:
            size = len(text.encode()) if not text.isascii() else len(text)
        except UnicodeEncodeError:
            raise _Unstorable(
                "has half of a surrogate pair", "remove it, or encode the bytes as base64"
            ) from None
        written = encode_basestring(text)
        self._spend(size + len(written) - len(text))
        self.parts.append(written)

    def _integer(self, value: Any) -> None:  # noqa: ANN401 - an int of any subclass
        number: int = int.__int__(value)
        if not INTEGER_MIN <= number <= INTEGER_MAX:
            raise _Unstorable("an integer beyond 64 bits", "write it as text")
        self._put(int.__repr__(number))

    def _float(self, value: Any) -> None:  # noqa: ANN401 - a float of any subclass
        number: float = float.__float__(value)
        if not isfinite(number):
            raise _Unstorable(f"{number!r} is not JSON", "use null, or text")
        text = float.__repr__(number)
        # jsonb writes 1e300 out in full when it is read.
        exponent = text.partition("e")[2]
        self._put(text, abs(int(exponent)) if exponent else 0)

    def _array(self, value: Any, depth: int) -> None:  # noqa: ANN401 - a list or tuple
        self._put("[")
        items: Iterator[object] = (
            list.__iter__(value) if issubclass(type(value), list) else tuple.__iter__(value)
        )
        for n, item in enumerate(items):
            if n:
                self._put(",")
            try:
                self.write(item, depth)
            except _Unstorable as refusal:
                refusal.path.append(f"[{n}]")
                raise
        self._put("]")

    def _object(self, value: Any, depth: int) -> None:  # noqa: ANN401 - a dict of any subclass
        self._put("{")
        own_keys: set[str] = set()  # of a class that may call equal keys different
        for n, (key, item) in enumerate(dict.items(value)):
            if n:
                self._put(",")
            name = self._key(key, own_keys)
            self._put(":")
            try:
                self.write(item, depth)
            except _Unstorable as refusal:
                refusal.path.append(f".{name}")
                raise
        self._put("}")

    def _key(self, key: object, own_keys: set[str]) -> str:
        kind = type(key)
        if not issubclass(kind, str):
            raise _Unstorable("has a key that is not text", "JSON objects have text keys")
        try:
            self._string(key)
        except _Unstorable as refusal:
            refusal.reason = f"a key {refusal.reason}" if not refusal.too_large else refusal.reason
            raise
        if kind is str:
            return clean_text(str.__str__(key), _WORDS_CHARS)
        plain = str.__str__(key)
        if plain in own_keys:
            raise _Unstorable("has a key twice", "name each once")
        own_keys.add(plain)
        return clean_text(plain, _WORDS_CHARS)


def _marker(kind: str, refusal: _Unstorable, preview: str = "") -> str:
    words = {"foliot": kind, "reason": clean_text(refusal.reason, _WORDS_CHARS)}
    if refusal.path:
        words["path"] = clean_text(refusal.place(), _WORDS_CHARS)
    if preview:
        words["preview"] = clean_text(preview, PREVIEW_CHARS)
    pairs = (f'"{key}":{encode_basestring(text)}' for key, text in words.items())
    return "{" + ",".join(pairs) + "}"
