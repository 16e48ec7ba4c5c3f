"""Idempotency keys around a request whose work is more than one statement.

The key is kept before the work begins, and the answer afterwards. Whoever sends the request again
gets that answer; while there is none, the first copy may still be at work. A node that gives up
in between says so, one that dies leaves a key without an answer: then, or after a while, the next
copy does the work again, which must therefore be known again by `KeptRequest.mark` and change
nothing the second time.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from foliot.core.errors import IdempotencyKeyReused
from foliot.core.ids import TenantId, microseconds
from foliot.core.model import Json
from foliot.store.database import Database
from foliot.store.errors import TransactionConflict
from foliot.store.statements import statement

_BEGIN: Final = statement("requests/begin")
_KEEP_ANSWER: Final = statement("requests/keep_answer")
_RELEASE: Final = statement("requests/release")
_ABANDON: Final = statement("requests/abandon")

# No request takes as long: a statement has 5 s.
ABANDONED_SECONDS: Final = 30.0
_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class RequestKey:
    """`request_hash` is equal for equal requests."""

    tenant_id: TenantId
    route: str
    key: str
    request_hash: bytes


@dataclass(frozen=True, slots=True)
class KeptRequest:
    """What is known of a request. One that is `at_work` elsewhere has no answer yet; of one that
    is not new, an earlier copy may have done the work."""

    key: RequestKey
    created_at: datetime
    is_new: bool = False
    at_work: bool = False
    answer: Json = None

    @property
    def mark(self) -> str:
        """The same for every copy of the request, and another one when the key is used anew.

        It stays short where the key is long: 255 characters may be 1020 bytes.
        """
        digest = hashlib.blake2b(self.key.key.encode(), digest_size=16, person=b"foliot-key")
        return f"{self.key.route} {digest.hexdigest()} {microseconds(self.created_at)}"

    @property
    def id(self) -> UUID:
        """For what the request makes: the second copy makes it under the same id."""
        written = f"{self.key.tenant_id} {self.mark}".encode()
        digest = hashlib.blake2b(written, digest_size=16, person=b"foliot-made").digest()
        return UUID(bytes=digest, version=5)


async def begin(database: Database, key: RequestKey, now: datetime | None = None) -> KeptRequest:
    """Keep the key, or find what an earlier copy of the request left."""
    place = (key.tenant_id, key.route, key.key, key.request_hash)
    for _ in range(_TRIES):
        row = await database.fetch_row(_BEGIN, *place, now, ABANDONED_SECONDS)
        if row is None:
            continue
        if row["request_hash"] != key.request_hash:
            raise IdempotencyKeyReused(key.key)
        at_work = not (row["is_new"] or row["abandoned"] or row["answer"] is not None)
        return KeptRequest(key, row["created_at"], row["is_new"], at_work, row["answer"])
    raise TransactionConflict("the key comes and goes", "40001", _BEGIN.name)


async def keep_answer(database: Database, kept: KeptRequest, answer: str) -> None:
    """`answer` is JSON text."""
    key = kept.key
    place = (key.tenant_id, key.route, key.key, kept.created_at)
    await database.execute(_KEEP_ANSWER, *place, answer)


async def release(database: Database, kept: KeptRequest, now: datetime | None = None) -> None:
    """The work was refused and has changed nothing; only who began it can know that."""
    key = kept.key
    place = (key.tenant_id, key.route, key.key, kept.created_at)
    await database.execute(_RELEASE, *place, now, ABANDONED_SECONDS)


async def abandon(database: Database, kept: KeptRequest) -> None:
    """The work may be done, and there is no answer to keep: the next copy need not wait."""
    key = kept.key
    await database.execute(_ABANDON, key.tenant_id, key.route, key.key, kept.created_at)
