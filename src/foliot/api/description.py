"""The OpenAPI document: what the framework knows of the routes, and what it cannot know.

Errors are the contract's own, not the framework's, and everything under /v1 needs a key.
"""

from typing import Any, Final

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import JSONResponse

from foliot.api.auth import CLOSED

_TEXT: Final = {"type": "string"}
_MAYBE_TEXT: Final = {"type": ["string", "null"]}
_DETAILS: Final = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"field": _MAYBE_TEXT, "message": _TEXT, "hint": _MAYBE_TEXT},
    },
}
_SHARED: Final = {"code": _TEXT, "request_id": _TEXT, "details": _DETAILS, "hint": _MAYBE_TEXT}
SCHEMAS: Final = {
    "Error": {
        "type": "object",
        "required": ["error"],
        "properties": {"error": {"type": "object", "properties": {"message": _TEXT, **_SHARED}}},
    },
    "Problem": {
        "type": "object",
        "properties": {
            "type": _TEXT,
            "title": _TEXT,
            "status": {"type": "integer"},
            "detail": _TEXT,
            **_SHARED,
        },
    },
}
_ERROR: Final = {
    "description": "What is wrong, and how to mend it",
    "content": {
        "application/json": {"schema": {"$ref": "#/components/schemas/Error"}},
        "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}},
    },
}
_FRAMEWORKS_OWN: Final = ("HTTPValidationError", "ValidationError")


routes = APIRouter()


@routes.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> JSONResponse:
    return JSONResponse(describe(request.app))


def describe(app: FastAPI) -> dict[str, Any]:
    """The framework makes its part once and keeps it; ours is added to that."""
    document = app.openapi()
    if "securitySchemes" in document.get("components", {}):
        return document
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for name in _FRAMEWORKS_OWN:
        schemas.pop(name, None)
    schemas.update(SCHEMAS)
    components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    for path, operations in document["paths"].items():
        if not path.startswith(CLOSED):
            continue
        for operation in operations.values():
            operation["security"] = [{"key": []}]
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = _ERROR
    return document
