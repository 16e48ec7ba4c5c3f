"""`/v1/secrets`: written, listed by name, deleted. No request gets a value back."""

from http import HTTPStatus
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from foliot.api.answers import Answer, page_of
from foliot.api.auth import Visit, Visiting
from foliot.api.idempotency import once
from foliot.api.keys import keyring_for
from foliot.api.pagination import Pages
from foliot.api.patience import insist
from foliot.api.refusals import InvalidCursor
from foliot.api.schemas.queries import ListQuery
from foliot.api.schemas.secrets import SecretBody, SecretValueBody
from foliot.core.errors import InvalidInput, PayloadTooLarge, SecretNotFound
from foliot.core.secret_references import check_name, is_name
from foliot.runtime.envelope import Keyring
from foliot.store import secrets as store

routes = APIRouter(prefix="/v1/secrets", tags=["secrets"])

VALUE_BYTES_MAX: Final = 65_536


@routes.post("", status_code=HTTPStatus.CREATED)
async def write_secret(request: Request, visit: Visiting, body: SecretBody) -> Response:
    """A new one, or the next version of one."""
    keyring = keyring_for(request)

    async def work(_: UUID, __: str) -> Answer:
        return await _put(visit, keyring, body.name, body.value)

    return await once(request, visit, work, digest=keyring.mac)


@routes.put("/{name}")
async def put_secret(
    request: Request, visit: Visiting, name: str, body: SecretValueBody
) -> Response:
    if body.name is not None and body.name != name:
        raise InvalidInput("is not the one in the address", field="name", hint="leave it out")
    return (await _put(visit, keyring_for(request), name, body.value)).response()


@routes.get("")
async def list_secrets(visit: Visiting, query: Annotated[ListQuery, Query()]) -> Response:
    pages = Pages(f"{visit.tenant_id} secrets {query.filters()}")
    after = _place(pages.place(query.cursor)) if query.cursor else ""
    found = await store.list_secrets(
        visit.database, visit.tenant_id, after=after, limit=query.limit + 1
    )
    shown = found[: query.limit]
    total = await store.count_secrets(visit.database, visit.tenant_id) if query.count else None
    cursor = pages.cursor([shown[-1].name]) if len(found) > query.limit else None
    return page_of([_view(each) for each in shown], cursor, total).response()


@routes.get("/{name}")
async def read_secret(visit: Visiting, name: str) -> Response:
    """That there is one, and since when: not what it is."""
    found = await store.find_secret(visit.database, visit.tenant_id, _meant(name))
    return Answer(_view(found)).response()


@routes.delete("/{name}")
async def delete_secret(visit: Visiting, name: str) -> Response:
    gone = await insist(
        lambda: store.delete_secret(visit.database, visit.tenant_id, _meant(name)),
        repeatable=False,
    )
    return Answer(_view(gone)).response()


async def _put(visit: Visit, keyring: Keyring, name: str, value: str) -> Answer:
    check_name(name)
    if len(value.encode()) > VALUE_BYTES_MAX:
        raise PayloadTooLarge(
            f"is larger than {VALUE_BYTES_MAX} bytes",
            field="value",
            hint="keep it elsewhere and its key here",
        )
    stored = await insist(
        lambda: store.put_secret(visit.database, keyring, (visit.tenant_id, name), value)
    )
    status = HTTPStatus.CREATED if stored.version == 1 else HTTPStatus.OK
    return Answer(_view(stored), status, {"Location": f"{routes.prefix}/{name}"})


def _meant(name: str) -> str:
    """What is no name at all is answered like an unknown one."""
    if not is_name(name):
        raise SecretNotFound(name)
    return name


def _place(place: list[Any]) -> str:
    if len(place) != 1 or not isinstance(place[0], str) or not is_name(place[0]):
        raise InvalidCursor("is not a cursor")
    return place[0]


def _view(stored: store.StoredSecret) -> dict[str, Any]:
    return {
        "name": stored.name,
        "version": stored.version,
        "created_at": stored.created_at,
        "updated_at": stored.updated_at,
    }
