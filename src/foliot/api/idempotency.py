"""POST requests that may be sent twice and are carried out once.

The key comes in a header or in the body, and holds for a day, for one tenant and one path. The
second copy is told what the first was. A request that is refused leaves its key free; one that may
have been carried out is done again by the next copy, under the same ids, and whatever becomes of
that copy, the key stays: only who began can know that nothing was done.
"""

import hashlib
import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final
from uuid import UUID

from fastapi import Request
from starlette.responses import Response

from foliot.api.answers import Answer, answer_from
from foliot.api.auth import Visit
from foliot.api.refusals import IdempotencyInFlight
from foliot.core.errors import FoliotError, InvalidInput
from foliot.runtime.chance import fresh_id
from foliot.store.errors import DatabaseError
from foliot.store.request_keys import (
    KeptRequest,
    RequestKey,
    abandon,
    begin,
    keep_answer,
    release,
)

log = logging.getLogger(__name__)

HEADERS: Final = ("Idempotency-Key", "X-Idempotency-Key")
BODY_FIELD: Final = "idempotency_key"
KEY_CHARS_MAX: Final = 255
REPLAYED: Final = "true"

# Does the work of a request: what it makes has this id, and is known again by this text.
Work = Callable[[UUID, str], Awaitable[Answer]]
# Finds what an earlier copy of the request has done, where doing it again is not the same as once.
Done = Callable[[KeptRequest], Awaitable[Answer | None]]
Digest = Callable[[bytes], bytes]


async def once(
    request: Request,
    visit: Visit,
    work: Work,
    *,
    done: Done | None = None,
    digest: Digest | None = None,
) -> Response:
    """Do the work, or say what an earlier copy of the request was answered.

    The body is known again by a hash. With a `digest` that has a key, the hash that is kept says
    nothing to those who would guess at the body.
    """
    body = await _body(request)
    key = _key(request, body)
    if key is None:
        made = fresh_id()
        return (await work(made, str(made))).response()
    route = f"{request.method} {request.url.path}"
    request_hash = _hash(body) if digest is None else digest(_hash(body))
    wanted = RequestKey(visit.tenant_id, route, key, request_hash)
    kept = await begin(visit.database, wanted)
    if kept.answer is not None:
        return answer_from(kept.answer).response(idempotency_replayed=REPLAYED)
    if kept.at_work:
        raise IdempotencyInFlight(key)
    return (await _do(visit, kept, work, done)).response()


async def _do(visit: Visit, kept: KeptRequest, work: Work, done: Done | None) -> Answer:
    try:
        if kept.is_new or done is None:
            answer = await work(kept.id, kept.mark)
        else:
            answer = await _do_the_rest(kept, work, done)
    except Exception as failure:
        # A refusal has changed nothing. After anything else the work may be done, and also after
        # the refusal of a later copy: by an earlier one. Whoever sends the request again does it
        # again, under the same ids.
        leave = release if kept.is_new and _is_refusal(failure) else abandon
        with suppress(DatabaseError):
            await leave(visit.database, kept)
        raise
    try:
        await keep_answer(visit.database, kept, answer.text())
    except DatabaseError as lost:
        # The work is done. Whoever asks again does it again, under the same ids.
        log.warning("an answer could not be kept: %s", lost)
    return answer


async def _do_the_rest(kept: KeptRequest, work: Work, done: Done) -> Answer:
    """The work, unless an earlier copy has done it: before this one, or just now."""
    answer = await done(kept)
    if answer is not None:
        return answer
    try:
        return await work(kept.id, kept.mark)
    except FoliotError as failure:
        answer = await done(kept) if _is_refusal(failure) else None
        if answer is None:
            raise
        return answer


def _is_refusal(failure: Exception) -> bool:
    return isinstance(failure, FoliotError) and not isinstance(failure, DatabaseError)


async def _body(request: Request) -> Any:  # noqa: ANN401 - any JSON; the route has checked it
    return await request.json() if await request.body() else None


def _key(request: Request, body: object) -> str | None:
    given = {_text(request.headers[name]) for name in HEADERS if name in request.headers}
    if isinstance(body, dict) and body.get(BODY_FIELD) is not None:
        given.add(body[BODY_FIELD])
    if not given:
        return None
    if len(given) > 1:
        raise InvalidInput("is given twice, with two values", field=BODY_FIELD, hint="give one")
    key: object = given.pop()
    if not isinstance(key, str) or not 0 < len(key) <= KEY_CHARS_MAX or not key.isprintable():
        raise InvalidInput(
            "is not a key", field=BODY_FIELD, hint=f"use 1 to {KEY_CHARS_MAX} plain characters"
        )
    return key


def _text(header: str) -> str:
    """A header is bytes, read as Latin-1. Who sends more than ASCII sends UTF-8, as in a body."""
    try:
        return header.encode("latin-1").decode()
    except UnicodeError:
        return header


def _hash(body: object) -> bytes:
    """Equal for equal contents, however they are laid out and whichever way the key came."""
    if isinstance(body, dict):
        body = {name: value for name, value in body.items() if name != BODY_FIELD}
    written = json.dumps(body or None, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(written.encode(), digest_size=16, person=b"foliot-body").digest()
