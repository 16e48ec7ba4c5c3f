"""What a route answers, before it is bytes: so that it can also be kept and told again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.responses import Response


@dataclass(frozen=True, slots=True)
class Answer:
    """`body` may hold times, ids and values of the model: they are written as the contract says."""

    body: Mapping[str, Any]
    status: HTTPStatus = HTTPStatus.OK
    headers: Mapping[str, str] = field(default_factory=dict)

    def response(self, **more_headers: str) -> Response:
        headers = dict(self.headers) | {
            name.replace("_", "-"): value for name, value in more_headers.items()
        }
        return Response(encode(self.body), self.status, headers, "application/json")

    def text(self) -> str:
        """As it is kept; `answer_from` reads it back."""
        kept = {"status": int(self.status), "headers": self.headers, "body": self.body}
        return encode(kept).decode()


def answer_from(kept: Mapping[str, Any]) -> Answer:
    return Answer(kept["body"], HTTPStatus(kept["status"]), kept["headers"])


def page_of(
    items: Sequence[Mapping[str, Any]], next_cursor: str | None, total: int | None = None
) -> Answer:
    counted = {} if total is None else {"total": total}
    return Answer({"items": items, "next_cursor": next_cursor, **counted})


def encode(value: object) -> bytes:
    return msgspec.json.encode(value)
