"""Commands in requests: off unless the operator allows them, and refused by name when wrong."""

from typing import Any

import pytest

from foliot.core.commands import Programs
from foliot.store.database import Database
from foliot.testing.web import Answer, Client, client_of

ALLOWED = Programs(frozenset({"/usr/bin/backup"}))


async def save(client: Client, **target: Any) -> Answer:  # noqa: ANN401 - whatever is sent
    body = {"name": "n", "schedule": {"type": "MANUAL"}, "target": {"type": "COMMAND", **target}}
    return await client.post("/v1/jobs", body)


@pytest.fixture
def client(database: Database) -> Client:
    return client_of(database, programs=ALLOWED)


async def test_commands_are_off_unless_the_operator_allows_them(database: Database) -> None:
    answer = await save(client_of(database), argv=["/usr/bin/backup"])
    assert answer.status == 403
    error = answer.body["error"]
    assert (error["code"], error["message"]) == ("FORBIDDEN", "target.type: commands are off")
    assert "FOLIOT_COMMANDS" in error["hint"]


async def test_an_allowed_program_is_saved_as_it_was_written(client: Client) -> None:
    env = {"TOKEN": "${secrets.TOKEN}"}
    answer = await save(client, argv=["/usr/bin/backup", "--all", "$(x)"], env=env)
    assert answer.status == 201
    target = {"type": "COMMAND", "argv": ["/usr/bin/backup", "--all", "$(x)"], "env": env}
    assert answer.body["target"] == target


async def test_another_program_is_refused_also_in_a_change(client: Client) -> None:
    answer = await save(client, argv=["/bin/sh", "-c", "id"])
    assert answer.status == 403
    assert answer.body["error"]["details"][0]["field"] == "target.argv[0]"
    made = await save(client, argv=["/usr/bin/backup"])
    path = f"/v1/jobs/{made.body['job_id']}"
    changed = await client.patch(path, {"target": {"argv": ["/bin/sh"]}})
    assert changed.status == 403


@pytest.mark.parametrize(
    ("target", "field", "message"),
    [
        (
            {"argv": "/usr/bin/backup --all"},
            "target.argv",
            "is a text, and there is no shell that would read it",
        ),
        ({"argv": ["backup"]}, "target.argv[0]", "'backup' is not the whole path of a program"),
        (
            {"argv": ["/usr/bin/backup"], "env": {"LD_PRELOAD": "/srv/x.so"}},
            "target.env.LD_PRELOAD",
            "could make the program run something else",
        ),
        (
            {"argv": ["/usr/bin/backup"], "env": {"A=B": "x"}},
            "target.env.A=B",
            "is not a name of a variable",
        ),
    ],
)
async def test_what_is_wrong_is_named_with_the_fix(
    client: Client, target: dict[str, Any], field: str, message: str
) -> None:
    answer = await save(client, **target)
    assert answer.status == 400
    detail = answer.body["error"]["details"][0]
    assert (detail["field"], detail["message"]) == (field, message)
    assert detail["hint"]


async def test_what_is_too_large_is_refused(client: Client) -> None:
    answer = await save(client, argv=["/usr/bin/backup", "x" * 100_000])
    assert answer.status == 413
