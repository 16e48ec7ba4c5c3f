"""What is read of an execution that waits: by the rules that hold it, and of one's own alone."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import product
from typing import Any

import pytest

from foliot.core.explain import explain
from foliot.core.explanation import Code, Explanation, Facts
from foliot.core.ids import ExecutionId, TenantId
from foliot.core.model import ErrorType, Failure, TargetType
from foliot.core.serving import serves
from foliot.core.states import ExecutionEvent
from foliot.scheduler.retain import Retain
from foliot.store.claiming import ClaimRequest, claim
from foliot.store.database import Database
from foliot.store.explaining import explain_execution, read_facts
from foliot.store.finishing import Outcome, finish
from foliot.store.lanes import list_servable
from foliot.store.partitions import provide_partitions
from foliot.store.workers import REMOTE, WorkerProfile
from foliot.testing.database import sql
from foliot.testing.rows import (
    DEFAULT_TENANT,
    NOW,
    ExecutionRow,
    fresh_id,
    insert_rows,
    make_execution,
    make_executions,
    make_job,
    make_lane,
    make_tenant,
    make_worker,
)

SECOND = timedelta(seconds=1)
ROOM = sql("select key, room, opens_at from foliot.limit_room($1, $2)")
SERVED = sql("select foliot.is_served($1, $2)")
DELETE_JOB = sql("update foliot.jobs set status = 'DELETED' where id = $1")


async def facts_of(
    database: Database, execution: ExecutionRow, tenant_id: TenantId = DEFAULT_TENANT
) -> Facts:
    facts = await read_facts(database, tenant_id, execution.execution_id, NOW)
    assert facts is not None
    return facts


async def told(database: Database, execution: ExecutionRow) -> Explanation:
    found = await explain_execution(database, DEFAULT_TENANT, execution.execution_id, NOW)
    assert found is not None
    return found


async def codes(database: Database, execution: ExecutionRow) -> list[Code]:
    return [reason.code for reason in (await told(database, execution)).reasons]


async def staff(database: Database) -> None:
    """A worker and a scheduler."""
    await make_worker(database)
    times = {"started_at": NOW, "last_seen_at": NOW}
    await insert_rows(
        database, "schedulers", [{"id": fresh_id(), "host": "h", "version": "0", **times}]
    )


async def test_of_another_tenant_and_of_nobody_nothing_is_told(database: Database) -> None:
    other = await make_tenant(database)
    execution = await make_execution(database)
    assert await explain_execution(database, other, execution.execution_id, NOW) is None
    for unknown in (fresh_id(), ExecutionId(execution.job_id)):
        assert await explain_execution(database, DEFAULT_TENANT, ExecutionId(unknown), NOW) is None


@pytest.mark.parametrize("starts", [(), (1,), (1, 2, 3), (1, 70), (30, 31)])
@pytest.mark.parametrize(("running", "ready"), [(0, 0), (1, 0), (2, 1), (0, 3)])
async def test_a_limit_is_told_to_be_full_when_it_lets_nothing_go(
    database: Database, starts: Sequence[int], running: int, ready: int
) -> None:
    job = await make_job(database)
    keys = [f"tenant:{DEFAULT_TENANT}", f"job:{job.job_id}", f"key:{DEFAULT_TENANT}:k"]
    limits: list[Mapping[str, Any]] = [
        {"key": keys[0], "max_running": 3, "rate_count": None, "rate_seconds": None},
        {"key": keys[1], "max_running": 2, "rate_count": 3, "rate_seconds": 60.0},
    ]
    await insert_rows(database, "limits", limits)
    if starts:
        rows = [{"key": keys[1], "at": NOW - SECOND * ago, "started": 1} for ago in starts]
        await insert_rows(database, "rate_starts", rows)
    if running:
        await make_executions(database, job, running, status="RUNNING", limit_keys=keys)
    if ready:
        await make_executions(database, job, ready, limit_keys=keys)
    held = await make_execution(database, job, status="WAITING", hold="LIMIT", limit_keys=keys)
    facts = await facts_of(database, held)
    rooms = {row["key"]: row for row in await database.fetch(ROOM, keys, NOW)}
    full = {reason.details["key"] for reason in explain(facts).reasons if "key" in reason.details}
    assert full == {
        key for key, row in rooms.items() if row["room"] is not None and row["room"] <= 0
    }
    assert [use.key for use in facts.limits] == keys[:2]
    assert [use.slots for use in facts.limits] == [running + ready] * 2
    assert facts.limits[1].used == ready + sum(ago < 60 for ago in starts)
    assert facts.limits[1].opens_at == rooms[keys[1]]["opens_at"]
    assert len(facts.limits[0].holders) == min(3, running + ready)
    assert facts.alike == 1


async def test_the_rule_of_who_serves_a_lane_is_the_one_that_workers_go_by(
    database: Database,
) -> None:
    lanes = {
        await make_lane(
            database, queue, region=region, requires=requires, target_type=kind, handler=handler
        )
        for queue, region, requires, (kind, handler) in product(
            ("default", "mail"),
            (None, "eu"),
            ((), ("gpu",), ("big", "gpu")),
            (("HANDLER", "work"), ("HANDLER", "other"), ("HTTP", None)),
        )
    }
    profiles = [
        WorkerProfile("w", "h", "0", queues, 1, None, labels, region, handlers, types)
        for queues, region, labels, handlers, types in product(
            (("default",), ("*",), ()),
            (None, "eu", "us"),
            ((), ("gpu",), ("gpu", "big", "more")),
            ((), ("work",)),
            ((TargetType.HANDLER,), (TargetType.HTTP, TargetType.HANDLER), ()),
        )
    ]
    executions = {}
    for lane_id in lanes:
        job = await make_job(database, lane_id=lane_id)
        executions[lane_id] = await make_execution(database, job)
    lane_facts = {each: (await facts_of(database, executions[each])).lane for each in lanes}
    some = next(iter(executions.values()))
    for profile in profiles:
        columns = {
            name: getattr(profile, name) for name in ("queues", "labels", "region", "handlers")
        }
        worker = await make_worker(database, **columns, target_types=profile.target_types)
        (alike,) = (await facts_of(database, some)).workers.live
        servable = {
            lane for ids in (await list_servable(database, profile)).values() for lane in ids
        }
        assert {
            each for each, lane in lane_facts.items() if lane and serves(alike, lane)
        } == servable
        await database.execute(sql("delete from foliot.workers where id = $1"), worker)


async def test_only_workers_that_live_and_would_serve_this_tenant_count(
    database: Database,
) -> None:
    other = await make_tenant(database)
    execution = await make_execution(database)
    await make_worker(database, status="DEAD")
    await make_worker(database, tenant_id=other)
    await make_worker(database, last_heartbeat_at=NOW - 16 * SECOND)
    await make_worker(database, status="DRAINING")
    facts = await facts_of(database, execution)
    assert (facts.workers.live, facts.workers.silent, facts.workers.draining) == ((), 1, 1)
    busy = await make_worker(database, capacity=2)
    await make_worker(database, capacity=3, tenant_id=DEFAULT_TENANT)
    await make_executions(database, await make_job(database), 5, status="RUNNING", worker_id=busy)
    (alike,) = (await facts_of(database, execution)).workers.live
    assert (alike.number, alike.capacity, alike.in_use) == (2, 5, 2), "no more than it has places"


async def test_of_others_in_a_full_queue_only_the_number_is_told(database: Database) -> None:
    other = await make_tenant(database)
    await insert_rows(database, "queues", [{"name": "default", "concurrency_limit": 3}])
    theirs = await make_job(database, tenant_id=other)
    await make_executions(database, theirs, 2, status="RUNNING", queue_slot=True)
    job = await make_job(database)
    own = await make_execution(database, job, status="RUNNING", queue_slot=True)
    waiting = await make_execution(database, job)
    facts = await facts_of(database, waiting)
    assert facts.queue is not None
    assert (facts.queue.used, facts.queue.at_most) == (3, 3)
    assert [each.execution_id for each in facts.queue.holders] == [own.execution_id]
    assert Code.CONCURRENCY in await codes(database, waiting)


async def test_the_line_is_counted_up_to_a_thousand(database: Database) -> None:
    await staff(database)
    other = await make_tenant(database)
    job, theirs = await make_job(database), await make_job(database, tenant_id=other)
    last = await make_execution(database, job, rank=10_000.0)
    await make_executions(database, theirs, 3)
    await make_executions(database, job, 2, rank=20_000.0)
    (reason,) = (await told(database, last)).reasons
    assert reason.message == "3 executions are ahead of it in its lane, 0 of its tenant"
    await make_executions(database, job, 1200)
    facts = await facts_of(database, last)
    assert (facts.ahead, facts.own_ahead) == (1001, 1001)
    (reason,) = (await told(database, last)).reasons
    assert reason.message.startswith("over 1,000 executions are ahead of it in its lane")


async def test_what_a_deleted_jobs_execution_waits_for_is_its_end(database: Database) -> None:
    await staff(database)
    job = await make_job(database)
    execution = await make_execution(
        database, job, status="PENDING", available_at=NOW + timedelta(hours=1)
    )
    assert await codes(database, execution) == [Code.NOT_DUE]
    await database.execute(DELETE_JOB, job.job_id)
    assert await codes(database, execution) == [Code.JOB_DELETED, Code.NOT_DUE]
    async with database.transaction() as session:
        await provide_partitions(session, NOW, days_ahead=1)
    await Retain(database).run_once(NOW)
    assert (await told(database, execution)).status == "CANCELLED"
    assert await codes(database, execution) == [Code.FINISHED]


@pytest.mark.parametrize("hold", ["PARENT", "EVENT"])
async def test_what_a_dag_run_holds(database: Database, hold: str) -> None:
    await staff(database)
    run = fresh_id()
    execution = await make_execution(database, status="WAITING", hold=hold, dag_run_id=run)
    (reason,) = (await told(database, execution)).reasons
    assert (reason.code, reason.details) == (Code(hold), {"dag_run_id": run})
    assert str(run) in reason.message


async def test_what_the_last_attempt_died_of_is_read_from_the_history(database: Database) -> None:
    async with database.transaction() as session:
        await provide_partitions(session, NOW, days_ahead=1)
    job = await make_job(database)
    execution = await make_execution(database, job)
    worker = await make_worker(database)
    for error in ("first", "second"):
        request = ClaimRequest(worker, "default", [job.lane_id], 1)
        (ours,) = await claim(database, request, NOW)
        failed = Failure(ErrorType.HANDLER_ERROR, error)
        outcome = Outcome(
            ours.execution_id, ours.fence, ExecutionEvent.RETRY, failure=failed, delay_seconds=60
        )
        await finish(database, worker, [outcome], NOW)
        facts = await facts_of(database, execution)
        assert facts.error["message"] == error
        await database.execute(
            sql("update foliot.executions set status = 'QUEUED', rank = 1, available_at = $1"), NOW
        )


async def test_who_holds_it_is_told_also_if_nobody_knows_him(database: Database) -> None:
    job = await make_job(database)
    remote = await make_execution(database, job, status="RUNNING", worker_id=REMOTE)
    lost = await make_execution(database, job, status="RUNNING", worker_id=fresh_id())
    assert await codes(database, remote) == [Code.HANDED_OVER]
    (reason,) = (await told(database, lost)).reasons
    assert reason.code is Code.RUNNING
    assert reason.message.endswith("; the worker is dead")


async def test_a_lane_that_nobody_serves_is_passed_over_as_it_is_told(database: Database) -> None:
    await staff(database)
    lane = await make_lane(database, handler="unknown")
    job = await make_job(database, lane_id=lane)
    held = await make_execution(
        database, job, status="WAITING", hold="LIMIT", limit_keys=[f"job:{job.job_id}"]
    )
    assert await database.fetch_value(SERVED, lane, DEFAULT_TENANT) is False
    assert await codes(database, held) == [Code.NO_WORKER]
