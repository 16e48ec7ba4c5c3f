"""The course of a run: jobs are made, clients ask, and in the end every schedule is paused."""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar
from uuid import UUID

from chaos.workload import asking, changing
from chaos.workload.calling import Address, Line, Record, Reply, Request
from chaos.workload.clients import Client, Known
from chaos.workload.kinds import NARROW, PAUSED, PlannedJob
from chaos.workload.plan import NARROW_LIMIT, Plan

Deed = Callable[[Client], Awaitable[None]]
Subject = TypeVar("Subject")

# One client for so many instants a second; it asks for something about once a second.
INSTANTS_PER_CLIENT: Final = 15.0
PAUSE_SECONDS: Final = 1.2
AT_ONCE: Final = 6
# What waits beyond this is enough: clients ask for nothing more until it is less.
BRAKED_FROM: Final = 300
LOOK_SECONDS: Final = 2.0
PAGE: Final = 1000

# What makes more work, and what does not: the weight of each.
MORE: Final[Mapping[Deed, int]] = {
    asking.enqueue: 30,
    asking.enqueue_at_once: 5,
    asking.reuse_key: 4,
    asking.enqueue_many: 2,
    asking.trigger: 8,
    asking.cancel_asked: 8,
    asking.replay: 4,
    changing.make_once: 8,
    changing.make_passing: 5,
}
OTHER: Final[Mapping[Deed, int]] = {
    asking.cancel_any: 3,
    asking.read: 6,
    changing.pause: 7,
    changing.resume: 6,
    changing.edit: 9,
    changing.pause_queue: 4,
    changing.delete: 1,
}


async def set_up(address: Address, plan: Plan, record: Record) -> Known:
    """Every job of the plan, and the limit of the narrow queue; returns when all are there."""
    known = Known(plan)
    chance = plan.chance("set up")
    async with _line(address, record) as line:

        async def make(planned: PlannedJob) -> None:
            name = planned.body["name"]
            key = f"{plan.seed}-{name}"
            request = Request("create", "POST", "/jobs", planned.body, key)
            made = _good(await line.insist(request, chance), name)
            known.learn(name, made.id("job_id"), planned.body)

        first = [one for one in plan.jobs if one.body["schedule"]["type"] != "AFTER"]
        await _some_at_once(make, first)
        for follower in plan.jobs:
            if follower.body["name"] not in known.ids:
                await make(follower)
        wanted = {"concurrency_limit": NARROW_LIMIT}
        path = f"/queues/{NARROW}"
        limit = Request("limit queue", "PATCH", path, wanted, about={"queue": NARROW})
        _good(await line.insist(limit, chance), NARROW)
    return known


async def run(address: Address, known: Known, stop: asyncio.Event, record: Record) -> None:
    """Clients at their work until told to stop; each ends with what it has begun."""
    count = max(2, math.ceil(known.plan.instants_per_second / INSTANTS_PER_CLIENT))
    async with _line(address, record, stop) as line, asyncio.TaskGroup() as group:
        group.create_task(_watch(line, known, stop))
        for number in range(1, count + 1):
            group.create_task(_work(Client(number, line, known), stop))


async def calm(address: Address, known: Known, record: Record) -> None:
    """Every queue goes on, and every schedule that fires again and again is paused: what is left
    comes to its end."""
    chance = known.plan.chance("calm")
    async with _line(address, record) as line:

        async def pause(job_id: UUID) -> None:
            path = f"/jobs/{job_id}/pause"
            await line.insist(Request("pause", "POST", path, job_id=job_id), chance)

        for queue in PAUSED:
            await line.insist(changing.queue_request("resume", queue), chance)
        while active := await _active(line, known):
            await _some_at_once(pause, active)


async def _work(client: Client, stop: asyncio.Event) -> None:
    if client.number == 1:  # so that the shortest run has one
        await changing.pause_queue(client)
    while not stop.is_set():
        deeds = OTHER if client.known.braked else {**MORE, **OTHER}
        deed = client.chance.choices([*deeds], [*deeds.values()])[0]
        await deed(client)
        await client.rest(0, PAUSE_SECONDS)


async def _watch(line: Line, known: Known, stop: asyncio.Event) -> None:
    """The brake. Without an answer nobody knows how much waits: that is no time to ask for more."""
    while not stop.is_set():
        reply = await line.send(Request("queues", "GET", "/queues", {"limit": 100}))
        queues = (reply.body or {}).get("items", []) if reply.is_good else []
        waiting = sum(one["depth"] for one in queues)
        known.braked = not reply.is_good or waiting > BRAKED_FROM
        await line.rest(LOOK_SECONDS)


async def _active(line: Line, known: Known) -> list[UUID]:
    found: list[UUID] = []
    chance = known.plan.chance("calm list")
    for kind in ("CRON", "INTERVAL"):
        query: dict[str, Any] = {"schedule_type": kind, "status": "ACTIVE", "limit": PAGE}
        while query:
            listed = await line.insist(Request("jobs", "GET", "/jobs", query), chance)
            page = _good(listed, "jobs").body or {}
            found += [UUID(one["job_id"]) for one in page["items"]]
            query = query | {"cursor": page["next_cursor"]} if page["next_cursor"] else {}
    return found


async def _some_at_once(
    do: Callable[[Subject], Awaitable[None]], subjects: Iterable[Subject]
) -> None:
    left = iter(subjects)

    async def lane() -> None:
        for subject in left:
            await do(subject)

    await asyncio.gather(*(lane() for _ in range(AT_ONCE)))


@asynccontextmanager
async def _line(
    address: Address, record: Record, stop: asyncio.Event | None = None
) -> AsyncIterator[Line]:
    line = Line(address, record, stop or asyncio.Event())
    try:
        yield line
    finally:
        await line.close()


def _good(reply: Reply, what: str) -> Reply:
    """What must not be refused was not."""
    if not reply.is_good:
        raise RuntimeError(f"{what}: {reply.status} {reply.body}")
    return reply
