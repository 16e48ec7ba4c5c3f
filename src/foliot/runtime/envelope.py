"""Values that nobody may read at rest: sealed under a key that never enters the database.

Each value has a data key of its own, used once, and the data key is wrapped under one of the
operator's keys, whose id stands beside it. Both layers are AES-256-GCM and bound to a context
(whose value it is, its name, its version), so a row that was changed, or moved to another place,
does not open. The first key of the ring seals; all of them open.
"""

import base64
import hmac
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from foliot.core.errors import FoliotError

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
TAG_BYTES: Final = 16
_WRAPPED_BYTES: Final = KEY_BYTES + TAG_BYTES
_HEAD_BYTES: Final = _WRAPPED_BYTES + NONCE_BYTES
_SEPARATOR: Final = re.compile(r"[\s,]+")


@dataclass(frozen=True, slots=True)
class Sealed:
    """As a row keeps it. `ciphertext`: the wrapped data key, a nonce, the value under that key."""

    key_id: str
    nonce: bytes
    ciphertext: bytes


class Unopenable(FoliotError):
    """A sealed value that cannot be opened. Says why, never what."""


@dataclass(eq=False)
class UnknownKey(Unopenable):
    """It was sealed under a key that this process was not given."""

    code: ClassVar[str] = "INTERNAL_ERROR"

    key_id: str

    def __str__(self) -> str:
        return f"it is sealed under the key {self.key_id!r}, which FOLIOT_SECRET_KEYS does not have"


class BrokenSeal(Unopenable):
    """Not what was sealed here: changed, cut short, moved, or under another key of that id."""

    def __str__(self) -> str:
        return "its seal is broken: it was changed or moved, or its key is another of the same id"


def context_of(*parts: object) -> bytes:
    """What a value is bound to; other parts never make the same bytes."""
    written = [str(part).encode() for part in parts]
    return b"".join(len(part).to_bytes(4, "big") + part for part in written)


class Keyring:
    """The operator's keys by their ids, the one that seals first."""

    def __init__(self, keys: Sequence[tuple[str, bytes]]) -> None:
        if not keys or len({key_id for key_id, _ in keys}) < len(keys):
            raise ValueError("a keyring needs keys, each under an id of its own")
        self._keys = {key_id: AESGCM(key) for key_id, key in keys}
        self._newest = keys[0][0]
        self._mac_key = hmac.digest(keys[0][1], b"foliot-mac", "sha256")

    def __repr__(self) -> str:
        return f"Keyring({', '.join(self._keys)})"

    @classmethod
    def parse(cls, text: str) -> Self:
        """From `id:base64 id:base64`, with spaces, commas or lines between them."""
        pairs = [pair.partition(":") for pair in _SEPARATOR.split(text.strip()) if pair]
        return cls([(key_id, _decoded(written)) for key_id, _, written in pairs])

    @property
    def newest(self) -> str:
        """The id of the key that seals."""
        return self._newest

    def seal(self, plaintext: bytes, context: bytes) -> Sealed:
        data_key, nonce = os.urandom(KEY_BYTES), os.urandom(NONCE_BYTES)
        body = nonce + AESGCM(data_key).encrypt(nonce, plaintext, context)
        return self._wrap(data_key, body, context)

    def open(self, sealed: Sealed, context: bytes) -> bytes:
        """The value, or UnknownKey, or BrokenSeal."""
        data_key, body = self._unwrap(sealed, context), sealed.ciphertext[_WRAPPED_BYTES:]
        nonce, encrypted = body[:NONCE_BYTES], body[NONCE_BYTES:]
        try:
            return AESGCM(data_key).decrypt(nonce, encrypted, context)
        except InvalidTag:
            raise BrokenSeal from None

    def rewrap(self, sealed: Sealed, context: bytes) -> Sealed:
        """The same value under the newest key, without looking at it."""
        data_key = self._unwrap(sealed, context)
        return self._wrap(data_key, sealed.ciphertext[_WRAPPED_BYTES:], context)

    def mac(self, data: bytes) -> bytes:
        """The same for the same data, and of no use for guessing at it without the key."""
        return hmac.digest(self._mac_key, data, "sha256")

    def _wrap(self, data_key: bytes, body: bytes, context: bytes) -> Sealed:
        nonce = os.urandom(NONCE_BYTES)
        bound = context_of(self._newest) + context
        wrapped = self._keys[self._newest].encrypt(nonce, data_key, bound)
        return Sealed(self._newest, nonce, wrapped + body)

    def _unwrap(self, sealed: Sealed, context: bytes) -> bytes:
        key = self._keys.get(sealed.key_id)
        if key is None:
            raise UnknownKey(sealed.key_id)
        wrapped = sealed.ciphertext[:_WRAPPED_BYTES]
        if len(sealed.nonce) != NONCE_BYTES or len(sealed.ciphertext) < _HEAD_BYTES + TAG_BYTES:
            raise BrokenSeal
        try:
            return key.decrypt(sealed.nonce, wrapped, context_of(sealed.key_id) + context)
        except InvalidTag:
            raise BrokenSeal from None


def new_key_line() -> str:
    """A fresh key as `FOLIOT_SECRET_KEYS` takes it, under an id that no other key has."""
    key = base64.b64encode(os.urandom(KEY_BYTES)).decode()
    return f"k{os.urandom(4).hex()}:{key}"


def _decoded(written: str) -> bytes:
    """Either alphabet, with its padding or without."""
    unified = written.rstrip("=").replace("-", "+").replace("_", "/")
    key = base64.b64decode(unified + "=" * (-len(unified) % 4), validate=True)
    if len(key) != KEY_BYTES:
        raise ValueError(f"a key has {KEY_BYTES} bytes")
    return key
