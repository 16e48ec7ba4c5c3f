"""Jobs that clients make, edit, pause, resume and delete while they run; queues that they pause."""

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final
from uuid import UUID

from chaos.workload.calling import Reply, Request
from chaos.workload.clients import Client
from chaos.workload.kinds import MISFIRES, OVERLAPS, PAUSED, ZONED, Body, every, job

PASSING_MAX: Final = 8
_ONCE: Final = {"ONE_TIME": 3, "DELAYED": 3, "IMMEDIATE": 2}


async def pause(client: Client) -> None:
    """At most a third of those that may be."""
    known = client.known
    active = [name for name in known.changed if name not in known.paused]
    if len(known.paused) * 2 >= len(active):
        await resume(client)
        return
    name = client.chance.choice(active)
    known.paused.add(name)
    await _change_status(client, "pause", known.ids[name])


async def resume(client: Client) -> None:
    known = client.known
    if not known.paused:
        return
    name = client.chance.choice(sorted(known.paused))
    reply = await _change_status(client, "resume", known.ids[name])
    if reply.is_settled:
        known.paused.discard(name)


async def pause_queue(client: Client) -> None:
    """For a moment. One that stays paused, since the client gave up, is resumed by the next."""
    queue = client.chance.choice(PAUSED)
    await client.insist(queue_request("pause", queue, client.key()))
    await client.rest(0.2, 4)
    await client.insist(queue_request("resume", queue, client.key()))


def queue_request(verb: str, queue: str, key: str | None = None) -> Request:
    path = f"/queues/{queue}/{verb}"
    return Request(f"{verb} queue", "POST", path, key=key, about={"queue": queue})


async def edit(client: Client) -> None:
    """Read, then change: as seen, as it is by now, as a whole, or as it never was."""
    name = client.chance.choice(client.known.changed)
    job_id = client.known.ids[name]
    path = f"/jobs/{job_id}"
    seen = await client.insist(Request("read job", "GET", path, job_id=job_id))
    if not seen.is_good or seen.body is None:
        return
    version, change = int(seen.body["version"]), _edit(client, dict(seen.body))
    match client.weighted({"as seen": 10, "any": 3, "whole": 3, "stale": 3}):
        case "as seen":
            request = Request("edit", "PATCH", path, change, version=version, job_id=job_id)
        case "any":
            request = Request("edit", "PATCH", path, change, job_id=job_id)
        case "whole":
            whole = _merged(dict(seen.body), change)
            request = Request("edit", "PUT", path, whole, version=version, job_id=job_id)
        case _:
            request = Request("edit", "PATCH", path, change, version=version + 7, job_id=job_id)
    await client.insist(request)


async def make_once(client: Client) -> None:
    """A job that has one instant: some of them long past, with and without a grace."""
    kind = client.weighted(_ONCE)
    schedule: Body = {"type": kind}
    if kind == "ONE_TIME":
        late = client.one_in(5)
        seconds = -30.0 if late else client.chance.uniform(-2, 8)
        schedule["run_at"] = _from_now(seconds)
        if late and client.one_in(2):
            schedule["misfire_grace_seconds"] = 5
    elif kind == "DELAYED":
        schedule["delay_seconds"] = round(client.chance.uniform(0, 6), 3)
    await _make(client, f"once-{kind.lower()}-{client.fresh()}", schedule)


async def make_passing(client: Client) -> None:
    """A cron that comes late, and is deleted or ends by itself."""
    known = client.known
    if len(known.passing) >= PASSING_MAX or (known.passing and client.one_in(3)):
        await delete(client)
        return
    schedule = every(client.chance.choice((1, 2)), misfire_policy=client.chance.choice(MISFIRES))
    match client.chance.randrange(3):
        case 0:
            schedule["end_at"] = _from_now(client.chance.uniform(10, 40))
        case 1:
            schedule["max_runs"] = client.chance.randint(3, 20)
        case _:
            schedule["start_at"] = _from_now(client.chance.uniform(-5, 5))
    name = f"passing-{client.fresh()}"
    made = await _make(client, name, schedule)
    if made.is_good:
        known.passing[name] = made.id("job_id")


async def delete(client: Client) -> None:
    known = client.known
    if not known.passing:
        return
    name = client.chance.choice(sorted(known.passing))
    job_id = known.passing.pop(name)
    await client.insist(Request("delete", "DELETE", f"/jobs/{job_id}", job_id=job_id))


async def _make(client: Client, name: str, schedule: Body) -> Reply:
    handler, payload = ("slow", {"seconds": 0.5}) if client.one_in(5) else ("quick", {})
    body = job(handler, schedule, payload) | {
        "name": name,
        "labels": {"kind": client.known.plan.kind_of(name)},
        "priority": client.chance.randint(1, 10),
    }
    return await client.insist(Request("create", "POST", "/jobs", body, client.key()))


async def _change_status(client: Client, action: str, job_id: UUID) -> Reply:
    return await client.insist(
        Request(
            action,
            "POST",
            f"/jobs/{job_id}/{action}",
            {"note": f"by client {client.number}"} if client.one_in(2) else None,
            client.key() if client.one_in(2) else None,
            job_id=job_id,
        )
    )


def _edit(client: Client, seen: Body) -> Body:
    """Mostly of the schedule, within its type."""
    chance = client.chance
    match client.weighted({"when": 6, "policy": 3, "payload": 1, "priority": 1}):
        case "policy":
            policies = {"misfire_policy": chance.choice(MISFIRES)}
            if seen["target"]["name"] == "quick":
                policies["overlap_policy"] = chance.choice(OVERLAPS)
            return {"schedule": policies}
        case "payload":
            return {"description": f"edited by client {client.number}"}
        case "priority":
            return {"priority": chance.randint(1, 10)}
        case _:
            return {"schedule": _other_times(chance, seen)}


def _other_times(chance: Random, seen: Body) -> Body:
    schedule = seen["schedule"]
    if schedule["type"] == "INTERVAL":
        return {"interval_seconds": chance.choice((1.0, 1.6, 2.3, 3.1))}
    if schedule["timezone"] != "UTC":
        expression, timezone = chance.choice(ZONED)
        return {"cron_expression": expression, "timezone": timezone}
    seconds = chance.choice((2, 3, 4, 5) if seen["target"]["name"] == "slow" else (1, 1, 2, 3, 4))
    return {"cron_expression": f"*/{seconds} * * * * *"}


def _merged(whole: Body, change: Body) -> Body:
    """As PATCH would: fields of a schedule one by one."""
    schedule = whole["schedule"] | change.get("schedule", {})
    return whole | change | {"schedule": schedule}


def _from_now(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()
