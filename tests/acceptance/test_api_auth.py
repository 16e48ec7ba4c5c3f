"""Nothing under /v1 without the key; the key acts for whichever tenant it names."""

from uuid import uuid4

import pytest

from foliot.store.database import Database
from foliot.testing.rows import DEFAULT_TENANT, NOW, make_tenant
from foliot.testing.web import KEY, Client, client_of


@pytest.fixture
def app_client(database: Database) -> Client:
    return client_of(database)


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        f"Basic {KEY}",
        f"Bearer {KEY}x",
        f"Bearer {KEY[:-1]}",
        f"Bearer {KEY.upper()}",
        f"Bearer {KEY} {KEY}",
        KEY,
        "Bearer \xff\xfe",
    ],
)
@pytest.mark.parametrize("path", ["/v1/jobs", "/v1", "/v1/nothing", "/v1/executions/x"])
async def test_without_the_key_nobody_is_let_in(path: str, header: str | None) -> None:
    client = client_of(Database("postgresql://127.0.0.1:1/nowhere"))
    stranger = Client(client.app, {} if header is None else {"authorization": header})
    refused = await stranger.get(path)
    assert refused.code == (401, "UNAUTHENTICATED")
    assert refused.headers["www-authenticate"] == "Bearer"
    assert refused.error["hint"] == "send Authorization: Bearer <key>"
    assert KEY not in str(refused.body)


async def test_the_body_of_a_stranger_is_not_even_read() -> None:
    client = client_of(Database("postgresql://127.0.0.1:1/nowhere"))
    stranger = Client(client.app, {})
    assert (await stranger.post("/v1/jobs", b"{" * 9_000_000)).code == (401, "UNAUTHENTICATED")


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_the_scheme_is_written_in_any_case(app_client: Client, scheme: str) -> None:
    client = Client(app_client.app, {"authorization": f"{scheme} {KEY}"})
    assert (await client.get("/v1/jobs")).status == 200


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics", "/openapi.json"])
async def test_health_is_open(path: str) -> None:
    client = client_of(Database("postgresql://127.0.0.1:1/nowhere"))
    assert (await Client(client.app, {}).get(path)).status == 200


async def test_the_operator_acts_for_the_tenant_that_is_named(
    app_client: Client, database: Database
) -> None:
    tenant = await make_tenant(database)
    for named, acts_for in (
        (None, DEFAULT_TENANT),
        (str(DEFAULT_TENANT), DEFAULT_TENANT),
        (str(tenant), tenant),
    ):
        headers = {"authorization": f"Bearer {KEY}"} | ({"x-tenant-id": named} if named else {})
        client = Client(app_client.app, headers)
        made = await client.post("/v1/jobs", {"name": f"job of {named}"})
        assert made.body["tenant_id"] == str(acts_for)


async def test_a_tenant_that_is_not_there_is_not_found(
    app_client: Client, database: Database
) -> None:
    gone = await make_tenant(database, deleted_at=NOW)
    for named in (str(uuid4()), "nonsense", str(gone)):
        client = Client(app_client.app, {"authorization": f"Bearer {KEY}", "x-tenant-id": named})
        assert (await client.get("/v1/jobs")).code == (404, "TENANT_NOT_FOUND")
