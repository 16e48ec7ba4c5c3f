"""`/v1/signing-keys`: which keys sign a tenant's callbacks; a new one, shown once."""

from http import HTTPStatus
from typing import Any
from uuid import UUID

from fastapi import APIRouter, Request
from starlette.responses import Response

from foliot.api.answers import Answer, page_of
from foliot.api.auth import Visiting
from foliot.api.idempotency import once
from foliot.api.keys import keyring_for
from foliot.api.patience import insist
from foliot.api.schemas.signing_keys import RotateBody
from foliot.core.signatures import write_key
from foliot.store.signing_keys import (
    StoredSigningKey,
    list_signing_keys,
    rotate_signing_key,
)

routes = APIRouter(prefix="/v1/signing-keys", tags=["signing keys"])


@routes.get("")
async def list_keys(visit: Visiting) -> Response:
    """The newest first, without the keys themselves."""
    found = await list_signing_keys(visit.database, visit.tenant_id)
    return page_of([_view(each) for each in found], None).response()


@routes.post("/rotate", status_code=HTTPStatus.CREATED)
async def rotate_key(request: Request, visit: Visiting, body: RotateBody | None = None) -> Response:
    """`key` is in this answer and nowhere else: a repeated request is answered without it."""
    keyring, wanted = keyring_for(request), body or RotateBody()
    shown: list[Answer] = []

    async def work(_: UUID, __: str) -> Answer:
        stored, key = await insist(
            lambda: rotate_signing_key(
                visit.database, keyring, visit.tenant_id, grace_seconds=wanted.grace_seconds
            )
        )
        shown.append(Answer(_view(stored) | {"key": write_key(key)}, HTTPStatus.CREATED))
        return Answer(_view(stored) | {"key": None}, HTTPStatus.CREATED)  # this one is kept

    kept = await once(request, visit, work)
    return shown[-1].response() if shown else kept


def _view(stored: StoredSigningKey) -> dict[str, Any]:
    return {
        "number": stored.number,
        "created_at": stored.created_at,
        "ends_at": stored.ends_at,
    }
