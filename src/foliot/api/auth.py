"""Who is let in, and for whom they act.

Everything under `/v1` needs a key, also paths that are not there. The operator's key acts for the
default tenant, or for the one named in `X-Tenant-ID`.
"""

import hashlib
import hmac
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import Depends, Request
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from foliot.api.errors import problem_of, respond
from foliot.api.refusals import TenantNotFound, Unauthenticated
from foliot.core.allow_list import AllowList
from foliot.core.commands import Programs
from foliot.core.ids import TenantId
from foliot.store.database import Database
from foliot.store.job_references import as_uuid
from foliot.store.tenants import DEFAULT_TENANT, is_tenant
from foliot.transport.port import Publisher

CLOSED: Final = "/v1"
TENANT_HEADER: Final = "X-Tenant-ID"
OPERATOR: Final = "operator"


@dataclass(frozen=True, slots=True)
class Visit:
    """A request that was let in: for which tenant, by whose key, and what it works on.

    `callback_allow` is what the operator opens to callbacks of all tenants; `programs` are those
    that jobs may run.
    """

    tenant_id: TenantId
    key_name: str
    database: Database
    callback_allow: AllowList
    hints: Publisher
    programs: Programs


class Doorkeeper:
    """Asks for the key before anything of the request is read."""

    def __init__(self, app: ASGIApp, api_key: str) -> None:
        self._app = app
        self._digest = _digest(api_key)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _is_closed(scope["path"]):
            try:
                scope["state"]["key_name"] = self._name_of(Headers(scope=scope))
            except Unauthenticated as refused:
                problem = problem_of(refused, scope["state"]["request_id"])
                await respond(problem, scope)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _name_of(self, headers: Headers) -> str:
        scheme, _, presented = headers.get("authorization", "").partition(" ")
        if not scheme:
            raise Unauthenticated("this needs a key")
        if scheme.lower() != "bearer":
            raise Unauthenticated("the Authorization header is not of the form Bearer <key>")
        # Digests have one length, so the time it takes says nothing about the key.
        if not hmac.compare_digest(_digest(presented.strip()), self._digest):
            raise Unauthenticated("the key is not known")
        return OPERATOR


async def visit(request: Request) -> Visit:
    state = request.app.state
    tenant_id = await _tenant(request, state.database)
    return Visit(
        tenant_id,
        request.state.key_name,
        state.database,
        state.callback_allow,
        state.hints,
        state.programs,
    )


Visiting = Annotated[Visit, Depends(visit)]


async def _tenant(request: Request, database: Database) -> TenantId:
    wanted = request.headers.get(TENANT_HEADER)
    if not wanted:
        return DEFAULT_TENANT
    found = as_uuid(wanted)
    if found == DEFAULT_TENANT:
        return DEFAULT_TENANT
    if found is None or not await is_tenant(database, TenantId(found)):
        raise TenantNotFound(wanted)
    return TenantId(found)


def _is_closed(path: str) -> bool:
    return path == CLOSED or path.startswith(f"{CLOSED}/")


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()
