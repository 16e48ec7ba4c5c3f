"""Executions that clients ask for, cancel, read and replay.

Each request carries its key also as a mark, in the labels or in the payload, so that whatever came
of it can be found without an answer. A request of a bulk has the mark of its key and its place.
"""

import asyncio
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from chaos.workload.calling import Reply, Request
from chaos.workload.clients import Client
from chaos.workload.kinds import Body

MARK: Final = "request"
_ASKED: Final = {
    "asked-quick": 30,
    "asked-apart": 4,
    "asked-slow": 4,
    "asked-stumbling": 6,
    "asked-doomed": 2,
    "asked-limited": 10,
    "asked-keyed": 10,
    "asked-rated": 12,
    "asked-soon": 4,
    "asked-unique": 6,
    "asked-narrow": 12,
    "asked-gated": 8,
    "asked-called": 6,
}
_CHEAP: Final = {"asked-quick": 6, "asked-rated": 3, "asked-narrow": 3, "asked-limited": 2}
_SOON_UNWANTED: Final = {
    "asked-slow": 6,
    "asked-called": 4,
    "asked-deaf": 1,
    "asked-unique": 2,
    "asked-quick": 2,
}
_ALIVE: Final = "RUNNING,WAITING,RETRYING,QUEUED,PENDING"


async def enqueue(client: Client) -> None:
    await client.insist(_enqueue(client, client.weighted(_ASKED)))


async def enqueue_at_once(client: Client) -> None:
    """The same request several times in the same moment: all are told of the same execution."""
    request = _enqueue(client, "asked-quick")
    count = client.chance.randint(2, 5)
    await asyncio.gather(*(client.line.send(request) for _ in range(count)))
    await client.insist(request)


async def reuse_key(client: Client) -> None:
    """With another body the key is refused, and the first body is still known."""
    request = _enqueue(client, "asked-quick")
    if not (await client.insist(request)).is_good or request.body is None:
        return
    other = {"payload": {"seconds": 0.01}, "labels": {MARK: f"{request.key}-other"}}
    await client.insist(replace(request, body=request.body | other))
    await client.insist(request)


async def enqueue_many(client: Client) -> None:
    """All or none. Often of one job, to fill its rate or limit."""
    one = client.weighted(_CHEAP)
    names = [
        one if client.chance.random() < 0.7 else client.weighted(_CHEAP)
        for _ in range(client.chance.randint(3, 12))
    ]
    key = client.key()
    items = [_item(client, name, f"{key}#{place}") for place, name in enumerate(names)]
    await client.insist(Request("bulk", "POST", "/executions/bulk", {"executions": items}, key))


async def trigger(client: Client) -> None:
    """Of any quick job, whether it is paused or over."""
    name = client.chance.choice(client.known.changed)
    key = client.key()
    body: Body = {"payload_override": client.known.bodies[name]["payload"] | {MARK: key}}
    if client.one_in(4):
        body["delay_seconds"] = round(client.chance.uniform(0, 2), 3)
    job_id = client.known.ids[name]
    await client.insist(
        Request("trigger", "POST", f"/jobs/{job_id}/trigger", body, key, job_id=job_id)
    )


async def cancel_asked(client: Client) -> None:
    """Asked for, and soon not wanted any more: while it waits, while it runs, or too late."""
    name = client.weighted(_SOON_UNWANTED)
    request = _enqueue(client, name)
    if client.one_in(3) and request.body is not None:
        request.body["delay_seconds"] = round(client.chance.uniform(1, 4), 3)
    made = await client.insist(request)
    if made.is_good:
        await client.rest(0, 2)
        await _cancel(client, made.id("execution_id"))


async def cancel_any(client: Client) -> None:
    """One of those that are alive, whoever asked for it."""
    for found in await _alive(client, client.chance.randint(1, 2)):
        await _cancel(client, UUID(found["execution_id"]))


async def read(client: Client) -> None:
    if not client.known.recent:
        return
    execution_id = client.chance.choice(client.known.recent)
    path = f"/executions/{execution_id}" + ("/explain" if client.one_in(4) else "")
    await client.line.send(Request("read", "GET", path, execution_id=execution_id))


async def replay(client: Client) -> None:
    """A dead letter, most of them with what makes them succeed. Two who replay it in the same
    moment, each with a key of its own, are told of the same execution."""
    listed = await client.insist(Request("dead letters", "GET", "/dead-letters", {"limit": 100}))
    letters: list[Body] = (listed.body or {}).get("items", []) if listed.is_good else []
    # Poison ends among the dead letters again, at the cost of some processes.
    spared = () if client.one_in(8) else ("poison",)
    open_ = [one for one in letters if not one["job_name"].startswith(spared)]
    if not open_:
        return
    letter = client.chance.choice(open_)
    first, second = _replay(client, letter), _replay(client, letter)
    if client.one_in(4):
        await asyncio.gather(client.line.send(first), client.line.send(second))
        await client.insist(second)
    await client.insist(first)


def _replay(client: Client, letter: Body) -> Request:
    key = client.key()
    body: Body = {}
    if "doomed" in letter["job_name"] and not client.one_in(4):
        body["payload_override"] = {"failures": 0, MARK: key}
    path = f"/dead-letters/{letter['id']}/replay"
    about, job_id = {"dead_letter_id": letter["id"]}, UUID(letter["job_id"])
    return Request("replay", "POST", path, body, key, about=about, job_id=job_id)


def _enqueue(client: Client, kind: str) -> Request:
    key = client.key()
    body = _item(client, kind, key)
    return Request(
        "enqueue", "POST", "/executions", body, key, job_id=client.known.ids[f"{kind}-000"]
    )


def _item(client: Client, kind: str, mark: str) -> Body:
    name, chance = f"{kind}-000", client.chance
    body: dict[str, Any] = {
        "job": name if client.one_in(2) else str(client.known.ids[name]),
        "labels": {MARK: mark},
    }
    if client.one_in(3):
        body["payload"] = dict(client.known.bodies[name]["payload"])
    if client.one_in(3):
        body["priority"] = chance.randint(1, 10)
    if client.one_in(6):
        body["delay_seconds"] = round(chance.uniform(0, 3), 3)
    if kind == "asked-keyed" and client.one_in(2):
        body["concurrency_key"] = f"asked-{chance.randint(1, 3)}"
    if kind == "asked-unique":
        body["unique_key"] = f"only-{chance.randint(1, 4)}"
    return body


async def _alive(client: Client, count: int) -> list[Body]:
    query = {"status": _ALIVE, "limit": 50}
    reply = await client.line.send(Request("list", "GET", "/executions", query))
    found: list[Body] = (reply.body or {}).get("items", []) if reply.is_good else []
    return client.chance.sample(found, min(count, len(found)))


async def _cancel(client: Client, execution_id: UUID) -> Reply:
    return await client.insist(
        Request(
            "cancel",
            "POST",
            f"/executions/{execution_id}/cancel",
            {"reason": "not wanted any more"} if client.one_in(2) else None,
            client.key() if client.one_in(2) else None,
            execution_id=execution_id,
        )
    )
