"""Whatever is written in a request, it is taken or refused: no value is a fault of ours.

The OpenAPI document says which operations there are, and which fields and parameters they have.
Each of these gets every strange value, one at a time; what is taken must also be there to be read.
"""

import copy
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import count, pairwise, product
from typing import Any

import pytest

from foliot.api.aliases import NAMES
from foliot.api.description import describe
from foliot.runtime.envelope import Keyring
from foliot.store.database import Database
from foliot.testing.web import Answer, Client, client_of

Place = tuple[str | int, ...]

DOCUMENT = describe(client_of(Database("postgresql://127.0.0.1:1/nowhere")).app)
# The longest that Python reads, and what only Python takes for a number.
DIGITS_MAX = 4300
NUMBERS: list[object] = [
    *(0, -1, 2**31, 2**63, 1e-300, 1e308, math.nan, math.inf),
    *(10**400, -(10**400), 10**DIGITS_MAX - 1),
]
TIMES: list[object] = [
    "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00+14:00",
    "1969-12-31T23:59:59Z",
    "9999-12-31T23:59:59.999999Z",
    "-infinity",
]
TEXTS: list[object] = ["", "\0", "\ud800", "\U0001f600" * 2000, "${payload.x}", "*", *TIMES]
OTHERS: list[object] = [
    True,
    [],
    {},
    ["a"],
    {"a": ["b"]},
    {"\0": "a"},
    {"\ud800": "a"},
    [[10**400]],
]
VALUES: list[object] = [*NUMBERS, *TEXTS, *OTHERS]
BODIES: list[bytes] = [
    *(b"abc", b"\xff", b"null", b"5", b"[]", b'"x"', b"{", b'{"a":', b"[" * 100_000),
    b'{"idempotency_key":["a"]}',
    b'{"idempotency_key":"\\u0000"}',
    b'{"idempotency_key":{}}',
    b'{"\\ud800":1}',
    b"1" * (DIGITS_MAX + 1),
]
QUERIES: list[object] = ["", "\0", "x" * 5000, "nan", "1e999", -1, 2**31, 2**63, 10**400, *TIMES]
PATHS = ["\0", "\xff", "x" * 5000, "\u0663", "00000000-0000-0000-0000-000000000000", "%"]

# Of operations that refuse an empty body: one that is fine but for the field that is strange.
CRON: dict[str, Any] = {"cron_expression": "* * * * *"}
LONG_DELAY: dict[str, Any] = {"delay_seconds": 300_000_000}
FINE: Mapping[str, Sequence[dict[str, Any]]] = {
    "POST /v1/jobs": [{}, {"schedule": CRON}],
    "PUT /v1/jobs/{job_id}": [{"schedule": CRON, "target": {"type": "HANDLER", "name": "h"}}],
    "POST /v1/executions": [{"job": "known"}],
    "POST /v1/executions/bulk": [{"executions": [{"job": "known"}]}],
    "POST /v1/executions/{execution_id}/progress": [{"fence": 1}],
    "POST /v1/executions/{execution_id}/complete": [{"fence": 1}],
    "POST /v1/executions/{execution_id}/fail": [{"fence": 1, "error": {"message": "no"}}],
    "POST /v1/schedules/preview": [{"schedule": CRON}, {"schedule": LONG_DELAY}],
    "POST /v1/dead-letters/replay": [{"filter": {}}],
    "POST /v1/secrets": [{"name": "TOKEN", "value": "x"}],
    "PUT /v1/secrets/{name}": [{"value": "x"}],
}
# What a job may say besides, under names that are not in the document.
ALIASES: list[Place] = [
    *((name,) for name in sorted(NAMES)),
    *(("retry_policy", name) for name in ("max_retries", "initial_delay_ms", "max_delay_ms")),
    *(("retry_config", name) for name in ("max_attempts", "backoff_seconds", "backoff_multiplier")),
    *(("execution", name) for name in ("callback_url", "timeout_seconds", "payload")),
]
OPERATIONS = [
    f"{method.upper()} {path}"
    for path, operations in DOCUMENT["paths"].items()
    for method in operations
    if path.startswith("/v1")
]


def described(operation: str) -> dict[str, Any]:
    method, path = operation.split()
    found: dict[str, Any] = DOCUMENT["paths"][path][method.lower()]
    return found


def places(schema: Mapping[str, Any]) -> Iterator[Place]:
    """Every field, and every field of those that are objects."""
    if "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    for each in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from places(each)
    for name, inner in schema.get("properties", {}).items():
        yield (name,)
        yield from ((name, *rest) for rest in places(inner))
    if "items" in schema:
        yield (0,)
        yield from ((0, *rest) for rest in places(schema["items"]))


def body_places(operation: str) -> list[Place]:
    written = described(operation).get("requestBody")
    if written is None:
        return []
    schema = written["content"]["application/json"]["schema"]
    is_job = operation in ("POST /v1/jobs", "PUT /v1/jobs/{job_id}", "PATCH /v1/jobs/{job_id}")
    if operation == "PATCH /v1/jobs/{job_id}":
        schema = {"$ref": "#/components/schemas/JobBody"}
    found = [*places(schema), *(ALIASES if is_job else ())]
    if is_job and not operation.startswith("POST "):
        # The rest is read as in a job that is made.
        found = [place for place in found if len(place) == 1 or place in ALIASES]
    return list(dict.fromkeys(found))


def with_value(body: Mapping[str, Any], place: Place, value: object) -> dict[str, Any]:
    changed: Any = copy.deepcopy(dict(body))
    inner = changed
    for name, following in pairwise(place):
        if isinstance(inner, list):
            inner[:] = inner or [{}]
            inner = inner[0]
        else:
            inner = inner.setdefault(name, [] if following == 0 else {})
    if isinstance(inner, list):
        inner[:] = [value]
    else:
        inner[place[-1]] = value
    whole: dict[str, Any] = changed
    return whole


class Stranger:
    """Sends requests, and remembers those that were answered as a fault of ours."""

    def __init__(self, database: Database) -> None:
        self.client: Client = client_of(database, keyring=Keyring([("k1", bytes(32))]))
        self.faults: list[str] = []
        self._numbers = count()
        self._ids: dict[str, str] = {}

    async def begin(self) -> None:
        job = await self.client.post("/v1/jobs", {"name": "known"})
        made = await self.client.post("/v1/executions", {"job": "known"})
        assert (job.status, made.status) == (201, 202)
        execution = made.body["execution_id"]
        self._ids = {"execution_id": execution, "letter_id": execution, "name": "default"}
        await self._fresh_job()

    def path(self, operation: str, **strange: str) -> str:
        return operation.split()[1].format_map(self._ids | strange)

    async def send(self, operation: str, path: str, body: object = None, query: str = "") -> None:
        """Where one request makes a name or changes a job, the next has another."""
        method, _ = operation.split()
        if operation == "POST /v1/jobs" and isinstance(body, dict):
            body = {"name": f"job-{next(self._numbers)}"} | body
        raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        asked = {query.partition("=")[0]: query.partition("=")[2]} if query else {}
        headers = {"if-match": "*"}
        answer = await self.client.send(method, path, raw, query=asked, headers=headers)
        self._judge(answer, f"{method} {path[:80]} {query[:80]} {str(raw)[:120]}")
        if answer.status < 300 and method != "GET":
            await self._read_again(answer, f"after {operation} {str(raw)[:120]}")
            if operation in ("PUT /v1/jobs/{job_id}", "PATCH /v1/jobs/{job_id}"):
                await self._fresh_job()

    async def _read_again(self, answer: Answer, cause: str) -> None:
        body = answer.body if isinstance(answer.body, dict) else {}
        for name, root, parts in (
            ("execution_id", "/v1/executions", ("", "/explain")),
            ("job_id", "/v1/jobs", ("/next",)),
        ):
            for part in parts if name in body else ():
                path = f"{root}/{body[name]}{part}"
                self._judge(await self.client.get(path), f"GET {path} {cause}")

    async def _fresh_job(self) -> None:
        made = await self.client.post("/v1/jobs", {"name": f"fresh-{next(self._numbers)}"})
        self._ids["job_id"] = made.body["job_id"]

    def _judge(self, answer: Answer, request: str) -> None:
        refused = answer.status >= 400
        if answer.status >= 500 or (refused and not answer.error["message"]):
            self.faults.append(f"{answer.status} {request}")


@pytest.fixture
async def stranger(database: Database) -> Stranger:
    made = Stranger(database)
    await made.begin()
    return made


@pytest.mark.parametrize("root", sorted({each.split("/")[2] for each in OPERATIONS}))
async def test_no_body_is_a_fault_of_ours(stranger: Stranger, root: str) -> None:
    for operation in OPERATIONS:
        if operation.split("/")[2] != root or "requestBody" not in described(operation):
            continue
        for raw in BODIES:
            await stranger.send(operation, stranger.path(operation), raw)
        first, *others = FINE.get(operation, [{}])
        for place in body_places(operation):
            # To the rest it makes no difference which schedule there is.
            bodies = [first, *(others if place[0] in ("schedule", "after") else ())]
            for fine, value in product(bodies, VALUES):
                body = with_value(fine, place, value)
                await stranger.send(operation, stranger.path(operation), body)
    assert stranger.faults == []


async def test_no_parameter_is_a_fault_of_ours(stranger: Stranger) -> None:
    for operation in OPERATIONS:
        for parameter in described(operation).get("parameters", ()):
            name = parameter["name"]
            for value in QUERIES if parameter["in"] == "query" else ():
                await stranger.send(operation, stranger.path(operation), query=f"{name}={value}")
            for value in PATHS if parameter["in"] == "path" else ():
                await stranger.send(operation, stranger.path(operation, **{name: value}))
    assert stranger.faults == []


@pytest.mark.parametrize("operation", [each for each in OPERATIONS if each.startswith("POST ")])
def test_every_body_that_is_read_has_a_shape(operation: str) -> None:
    """Every POST may carry an idempotency key in its body, so every body is read."""
    assert "requestBody" in described(operation)


async def test_what_is_called_fine_is_fine(stranger: Stranger) -> None:
    """Otherwise a strange value would be refused for something else."""
    for operation, bodies in FINE.items():
        for body in bodies:
            method, path = operation.split()[0], stranger.path(operation, name="TOKEN")
            named = body | ({"name": f"fine-{len(str(body))}"} if path == "/v1/jobs" else {})
            answer = await stranger.client.send(method, path, named, headers={"if-match": "*"})
            assert answer.status < 300 or answer.code == (409, "SUPERSEDED"), answer.body
