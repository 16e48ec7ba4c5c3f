"""The work of a chaos run is the same for a seed each time, has every kind, and stays bounded; its
clients record every request, and send again what was not answered."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import product
from random import Random

import pytest
from aiohttp import web

from chaos.facts import Exchange
from chaos.workload import Address, Plan, plan_jobs
from chaos.workload.calling import Line, Request
from chaos.workload.kinds import CHANGED, KINDS, MISFIRES, OVERLAPS
from foliot.api.schemas.jobs import JobBody
from foliot.core.ids import JobId
from foliot.core.schedule.check import validate
from foliot.runtime.chance import fresh_id

Answer = Callable[[web.Request], Awaitable[web.Response]]
SIZES = (10, 90, 100)
ENQUEUE = Request("enqueue", "POST", "/executions", {"job": "tick"}, "a key")


@pytest.fixture(params=SIZES)
def plan(request: pytest.FixtureRequest) -> Plan:
    return plan_jobs(7, request.param)


def test_a_seed_has_one_plan() -> None:
    assert plan_jobs(7, 90) == plan_jobs(7, 90)
    assert plan_jobs(7, 90) != plan_jobs(8, 90)
    chances = [plan_jobs(7, 90).chance("client 1").random() for _ in range(2)]
    assert chances[0] == chances[1] != plan_jobs(7, 90).chance("client 2").random()


def test_every_kind_is_there(plan: Plan) -> None:
    kinds = Counter(one.kind for one in plan.jobs)
    assert {kind.name for kind in KINDS} | {"tick", "parent", "follower"} <= kinds.keys()
    assert len({one.body["name"] for one in plan.jobs}) == len(plan.jobs)
    changed = [one for one in plan.jobs if CHANGED in one.body.get("tags", ())]
    assert {"tick", "zoned", "interval"} <= {one.kind for one in changed}
    for one in plan.jobs:
        assert plan.kind_of(one.body["name"]) == one.kind == one.body["labels"]["kind"]


def test_every_pair_of_policies_is_there(plan: Plan) -> None:
    schedules = [one.body["schedule"] for one in plan.jobs if one.kind == "tick"]
    pairs = {(one["overlap_policy"], one["misfire_policy"]) for one in schedules}
    assert pairs == set(product(OVERLAPS, MISFIRES))
    long = [one.body["schedule"] for one in plan.jobs if one.kind == "overlap"]
    assert {one["overlap_policy"] for one in long} == set(OVERLAPS)


@pytest.mark.parametrize("size", [90, 100])
def test_it_has_as_many_instants_as_wanted(size: float) -> None:
    assert size <= sum(one.rate for one in plan_jobs(7, size).jobs) <= size + 1


def test_every_job_can_be_made_in_its_order(plan: Plan) -> None:
    ids: dict[str, JobId] = {}
    for one in plan.jobs:
        body = JobBody.model_validate(one.body)
        validate(body.schedule.schedule(ids))
        body.retry_policy.policy()
        body.concurrency.concurrency()
        body.rate_limit.rate_limit()
        ids[one.body["name"]] = JobId(fresh_id())


def test_one_worker_of_sixteen_slots_can_do_all_of_it(plan: Plan) -> None:
    busy = 0.0
    for one in plan.jobs:
        alone = one.body["schedule"].get("overlap_policy", "SKIP") != "ALLOW"
        target = one.body["target"]
        is_slow = target.get("name") == "slow" or "/slow/" in target.get("url", "")
        on_average = 1.0 if is_slow else 0.5
        seconds = one.body["payload"].get("seconds", 0) * on_average + 0.03
        busy += min(1.0, one.rate * seconds) if alone else one.rate * seconds
    assert busy < 16


def test_http_jobs_call_the_target_by_their_name() -> None:
    plan = plan_jobs(7, 90, "http://127.0.0.1:7")
    urls = {one.body["name"]: one.body["target"].get("url") for one in plan.jobs}
    assert urls["called-000"] == "http://127.0.0.1:7/quick/called-000"
    assert urls["asked-called-000"] == "http://127.0.0.1:7/slow/asked-called-000"
    assert urls["tick-000"] is None


def test_what_runs_one_behind_the_other_has_time_to_spare(plan: Plan) -> None:
    for one in plan.jobs:
        if one.body["schedule"].get("overlap_policy") == "QUEUE_ALL":
            assert one.rate <= 1 / 3
            assert one.rate * one.body["payload"].get("seconds", 0) < 0.5


@asynccontextmanager
async def a_line(answer: Answer, records: list[Exchange]) -> AsyncIterator[Line]:
    """To a server that answers so."""
    app = web.Application()
    app.router.add_route("*", "/v1/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    address = Address(lambda: f"http://{host}:{port}", "the key")
    line = Line(address, records.append, asyncio.Event(), pause_seconds=0.01)
    try:
        yield line
    finally:
        await line.close()
        await runner.cleanup()


async def test_what_was_not_answered_is_sent_again_as_it_was() -> None:
    """No answer at all, one that is cut, three that say later, and one that counts."""
    seen: list[tuple[str | None, object]] = []
    records: list[Exchange] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append((request.headers.get("Idempotency-Key"), await request.json()))
        match len(seen):
            case 1:
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
            case 2:
                return web.Response(status=202, text="{", content_type="application/json")
            case 3:
                return web.json_response({}, status=503, headers={"Retry-After": "0.01"})
            case 4:
                return web.json_response({}, status=429, headers={"Retry-After": "soon"})
            case 5:
                code = {"error": {"code": "IDEMPOTENCY_IN_FLIGHT"}}
                return web.json_response(code, status=409)
            case _:
                made = {"execution_id": str(fresh_id())}
                return web.json_response(made, status=202)

    async with a_line(answer, records) as line:
        reply = await line.insist(ENQUEUE, Random(1), tries=10)
    assert reply.status == 202
    assert seen == [("a key", {"job": "tick"})] * 6
    assert [one.status for one in records] == [None, None, 503, 429, 409, 202]
    assert {(one.action, one.key, one.body["job"]) for one in records} == {
        ("enqueue", "a key", "tick")
    }
    assert [one.answered is None for one in records] == [True, True] + [False] * 4
    assert records[-1].execution_id == reply.id("execution_id")


async def test_a_refusal_is_an_answer_and_a_client_gives_up_at_last() -> None:
    records: list[Exchange] = []

    async def answer(request: web.Request) -> web.Response:
        good = request.headers.get("If-Match") == '"3"'
        return web.json_response({"error": {"code": "NO"}}, status=409 if good else 500)

    async with a_line(answer, records) as line:
        refused = Request("edit", "PATCH", "/jobs/1", {"priority": 1}, version=3)
        assert (await line.insist(refused, Random(1), tries=9)).code == "NO"
        assert not (await line.insist(ENQUEUE, Random(1), tries=3)).is_settled
    assert [one.status for one in records] == [409, 500, 500, 500]
    assert records[0].body == {"priority": 1, "If-Match": 3}


async def test_nobody_is_there() -> None:
    records: list[Exchange] = []
    nowhere = Address(lambda: "http://127.0.0.1:1", "the key")
    line = Line(nowhere, records.append, asyncio.Event(), pause_seconds=0.01)
    assert (await line.insist(ENQUEUE, Random(1), tries=2)).status is None
    await line.close()
    assert [one.status for one in records] == [None, None]
