"""Addresses of callbacks in requests: what cannot be called is refused when it is saved."""

from collections.abc import Mapping
from typing import Any

import pytest

from foliot.core.allow_list import read_allow_list
from foliot.store.database import Database
from foliot.store.tenants import DEFAULT_TENANT
from foliot.testing.database import sql
from foliot.testing.rows import make_tenant
from foliot.testing.web import Answer, Client, client_of

OPEN = sql("update foliot.tenants set callback_allow = $2 where id = $1")
WAY_OUT = "use a public address; an operator opens others with FOLIOT_CALLBACK_ALLOW"


@pytest.fixture
def client(database: Database) -> Client:
    return client_of(database)


async def save(client: Client, target: Mapping[str, Any], **fields: object) -> Answer:
    body = {"name": "n", "schedule": {"type": "MANUAL"}, "target": {"type": "HTTP", **target}}
    return await client.post("/v1/jobs", body | fields)


@pytest.mark.parametrize(
    ("target", "field", "message", "hint"),
    [
        ({"url": "http://127.0.0.1/"}, "target.url", "127.0.0.1 is a loopback address", WAY_OUT),
        (
            {"url": "http://localhost:9000/"},
            "target.url",
            "localhost is this machine: 127.0.0.1 is a loopback address",
            WAY_OUT,
        ),
        (
            {"url": "http://169.254.169.254/latest"},
            "target.url",
            "169.254.169.254 is a cloud's metadata endpoint",
            WAY_OUT,
        ),
        (
            {"url": "http://0x7f.1/"},
            "target.url",
            "'0x7f.1' is not an IPv4 address in its plain form",
            "write four decimal numbers like 192.0.2.10, or a name",
        ),
        (
            {"url": "ftp://example.com/"},
            "target.url",
            "is not an http or https address",
            "write it like https://example.com/x",
        ),
        (
            {"url": "https://me:hunter2@example.com/"},
            "target.url",
            "has a user or a password in it",
            "send an Authorization header, with ${secrets.NAME} for the password",
        ),
        (
            {"url": "https://example.com/", "headers": {"X-Foo": "a\r\nb"}},
            "target.headers.X-Foo",
            "has a line break or another control character",
            "remove it",
        ),
        (
            {"url": "https://example.com/", "headers": {"webhook-id": "1"}},
            "target.headers.webhook-id",
            "is set by Foliot",
            "leave it out",
        ),
    ],
)
async def test_what_cannot_be_called_is_refused_with_the_way_out(
    client: Client, target: dict[str, Any], field: str, message: str, hint: str
) -> None:
    refused = await save(client, target)
    assert refused.code == (400, "VALIDATION_ERROR")
    assert refused.error["details"] == [{"field": field, "message": message, "hint": hint}]


async def test_the_completion_callback_is_checked_too(client: Client) -> None:
    refused = await save(client, {"url": "https://example.com/"}, callback_url="http://10.0.0.1/")
    assert refused.code == (400, "VALIDATION_ERROR")
    assert refused.error["message"] == "callback_url: 10.0.0.1 is a private address"


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/x?y=z",
        "https://not-there-yet.example/",
        "https://reports.internal/",
        "https://bücher.example/ä",
        "http://93.184.216.34:8080/",
        "${secrets.HOOK}",
        "https://example.com/${secrets.TOKEN}?key=${secrets.KEY}",
    ],
)
async def test_what_may_be_callable_is_saved_as_it_was_written(client: Client, url: str) -> None:
    headers = {"Authorization": "Bearer ${secrets.TOKEN}"}
    made = await save(client, {"url": url, "headers": headers}, callback_url=url)
    assert made.status == 201
    assert (made.body["target"]["url"], made.body["callback_url"]) == (url, url)


async def test_a_change_is_checked_like_a_new_job(client: Client) -> None:
    made = await save(client, {"url": "https://example.com/"})
    path = f"/v1/jobs/{made.body['job_id']}"
    for change in ({"target": {"url": "http://10.0.0.1/"}}, {"callback_url": "http://[::1]/"}):
        assert (await client.patch(path, change)).code == (400, "VALIDATION_ERROR")
    whole = {**made.body, "target": {"type": "HTTP", "url": "http://10.0.0.1/"}}
    assert (await client.put(path, whole)).code == (400, "VALIDATION_ERROR")
    assert (await client.get(path)).body["target"]["url"] == "https://example.com/"


async def test_an_operator_opens_addresses_to_everybody(database: Database) -> None:
    opened = read_allow_list(["10.2.0.0/16", "loopback"], "X")
    client = client_of(database, callback_allow=opened)
    assert (await save(client, {"url": "http://10.2.0.1/"}, name="a")).status == 201
    assert (await save(client, {"url": "http://localhost:9/"}, name="b")).status == 201
    assert (await save(client, {"url": "http://10.3.0.1/"}, name="c")).status == 400


async def test_an_operator_opens_addresses_to_one_tenant(
    client: Client, database: Database
) -> None:
    await database.execute(OPEN, DEFAULT_TENANT, ["10.2.0.0/16"])
    assert (await save(client, {"url": "http://10.2.0.1/"}, name="a")).status == 201
    assert (await save(client, {"url": "http://10.3.0.1/"}, name="b")).status == 400
    other = Client(client.app, {**client.headers, "x-tenant-id": str(await make_tenant(database))})
    assert (await save(other, {"url": "http://10.2.0.1/"}, name="a")).status == 400


async def test_a_tenants_list_that_cannot_be_read_opens_nothing(
    client: Client, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    await database.execute(OPEN, DEFAULT_TENANT, ["10.2.0.1", "10.2/16"])
    assert (await save(client, {"url": "http://10.2.0.1/"})).status == 400
    assert "'10.2/16' is no network, address or name" in caplog.text
