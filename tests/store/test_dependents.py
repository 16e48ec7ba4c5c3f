"""Which jobs follow which: kept with the jobs, without cycles, and never after what is deleted."""

import asyncio
from datetime import timedelta
from uuid import UUID

import pytest

from foliot.core.errors import CycleDetected, InvalidSchedule
from foliot.core.ids import JobId
from foliot.core.model import After, AfterMode, AfterOn, Job
from foliot.core.states import JobState
from foliot.store.completions import follow
from foliot.store.connecting import ConnectionOptions
from foliot.store.database import Database
from foliot.store.errors import TransactionConflict
from foliot.store.job_rows import get, list_versions
from foliot.store.jobs import create, delete, pause, resume, update
from foliot.testing.database import sql
from foliot.testing.following import MANUAL, end_one, follower, live_of, make_child, make_parent
from foliot.testing.jobs import create_job, new_job
from foliot.testing.rows import DEFAULT_TENANT, NOW, make_tenant
from foliot.testing.running import until_blocked

SECOND = timedelta(seconds=1)
PARENTS = sql(
    "select parent_id, needs_success from foliot.job_parents where child_id = $1 order by 1"
)
AN_END = sql(
    "insert into foliot.completions"
    " (child_id, parent_id, execution_id, tenant_id, finished_at, status)"
    " values ($1, $2, gen_random_uuid(), $3, $4, 'SUCCEEDED')"
)
HOLD_GRAPH = sql("select pg_advisory_xact_lock(23, hashtext($1::uuid::text))")


async def parents_of(database: Database, job: Job) -> dict[UUID, bool]:
    rows = await database.fetch(PARENTS, job.job_id)
    return {row["parent_id"]: row["needs_success"] for row in rows}


async def make_jobs(database: Database, number: int) -> list[Job]:
    """That can be edited, named a, b, c and so on."""
    return [
        (await create_job(database, new_job(MANUAL, name=chr(ord("a") + place)))).job
        for place in range(number)
    ]


async def let_follow(database: Database, job: Job, *parents: Job) -> None:
    after = After(tuple(parent.job_id for parent in parents))
    edited = follower(after, job_id=job.job_id, name=job.name)
    await update(database, edited, changed_by="bob", now=NOW)


async def test_a_job_follows_whom_its_schedule_names_until_it_is_edited(
    database: Database,
) -> None:
    first, second, third = [await make_parent(database) for _ in range(3)]
    child = await make_child(database, After((first.job_id, second.job_id)))
    assert await parents_of(database, child) == {first.job_id: True, second.job_id: True}
    after = After((second.job_id, third.job_id), AfterMode.ANY, AfterOn.FINISHED)
    job = follower(after, job_id=child.job_id, name=child.name)
    await update(database, job, changed_by="bob", now=NOW)
    assert await parents_of(database, child) == {second.job_id: False, third.job_id: False}
    plain = new_job(MANUAL, job_id=child.job_id, name=child.name)
    await update(database, plain, changed_by="bob", now=NOW)
    assert await parents_of(database, child) == {}


async def test_an_edit_of_anything_else_keeps_what_was_told(database: Database) -> None:
    first, second = await make_parent(database), await make_parent(database)
    after = After((first.job_id, second.job_id))
    child = await make_child(database, after)
    await end_one(database, first)
    job = follower(after, job_id=child.job_id, name=child.name, priority=1)
    await update(database, job, changed_by="bob", now=NOW)
    await end_one(database, second)
    assert (await follow(database, now=NOW)).fired == (child.job_id,)


async def test_an_edit_keeps_what_was_told_of_parents_that_stay(database: Database) -> None:
    first, second, third = [await make_parent(database) for _ in range(3)]
    child = await make_child(database, After((first.job_id, second.job_id)))
    await end_one(database, first)
    await end_one(database, third)
    job = follower(After((first.job_id, third.job_id)), job_id=child.job_id, name=child.name)
    await update(database, job, changed_by="bob", now=NOW)
    assert (await follow(database, now=NOW)).fired == (), "the third ended before it counted"
    await end_one(database, third)
    assert (await follow(database, now=NOW)).fired == (child.job_id,)


@pytest.mark.parametrize("told", [False, True])
async def test_an_edit_that_leaves_nothing_to_wait_for_fires(
    database: Database, told: bool
) -> None:
    """Whether or not a pass has come by in between."""
    first, second = await make_parent(database), await make_parent(database)
    child = await make_child(database, After((first.job_id, second.job_id)))
    await end_one(database, first)
    if told:
        await follow(database, now=NOW)
    job = follower(After((first.job_id,)), job_id=child.job_id, name=child.name)
    await update(database, job, changed_by="bob", now=NOW)
    (live,) = await live_of(database, child.job_id)
    assert live["job_version"] == 2
    assert (await follow(database, now=NOW)).fired == ()


async def test_a_parent_that_comes_again_counts_from_then_on(database: Database) -> None:
    """An end that was not told yet when the parent was taken away is not told afterwards."""
    first, second, other = [await make_parent(database) for _ in range(3)]
    child = await make_child(database, After((first.job_id, second.job_id)))
    await end_one(database, first)
    for after in (After((second.job_id, other.job_id)), After((first.job_id, second.job_id))):
        job = follower(after, job_id=child.job_id, name=child.name)
        await update(database, job, changed_by="bob", now=NOW)
    await end_one(database, second)
    assert (await follow(database, now=NOW)).fired == ()
    await end_one(database, first)
    assert (await follow(database, now=NOW)).fired == (child.job_id,)


async def test_what_was_due_fires_under_the_schedule_it_was_due_under(database: Database) -> None:
    parent, other = await make_parent(database), await make_parent(database)
    child = await make_child(database, After((parent.job_id,)))
    await end_one(database, parent)
    job = follower(After((other.job_id,)), job_id=child.job_id, name=child.name)
    await update(database, job, changed_by="bob", now=NOW)
    (live,) = await live_of(database, child.job_id)
    assert live["job_version"] == 1


async def test_a_job_cannot_follow_one_that_is_not_there(database: Database) -> None:
    unknown = JobId(UUID(int=7))
    deleted = (await create_job(database, new_job(MANUAL))).job
    await delete(database, DEFAULT_TENANT, deleted.job_id, changed_by="bob", now=NOW)
    foreign = await make_parent(database, tenant_id=await make_tenant(database))
    for missing in (unknown, deleted.job_id, foreign.job_id):
        job = follower(After((missing,)))
        with pytest.raises(InvalidSchedule, match=f"there is no job {missing}") as refusal:
            await create(database, job, changed_by="alice", now=NOW)
        assert refusal.value.field == "after.jobs"
        assert await parents_of(database, job) == {}


async def test_a_cycle_is_refused_and_told_from_the_job_that_would_close_it(
    database: Database,
) -> None:
    a, b, c, aside = await make_jobs(database, 4)
    await let_follow(database, b, a, aside)
    await let_follow(database, c, b)
    with pytest.raises(CycleDetected) as refusal:
        await let_follow(database, a, c)
    assert refusal.value.cycle == ("a", "c", "b", "a")
    assert "a follows c follows b follows a: none of these 3 jobs" in str(refusal.value)
    assert await parents_of(database, a) == {}
    await let_follow(database, c, a)
    await let_follow(database, b, c)
    assert set(await parents_of(database, b)) == {c.job_id}


async def test_two_edits_at_once_cannot_close_a_cycle_between_them(
    database: Database, database_url: str
) -> None:
    a, b = await make_jobs(database, 2)
    async with Database(database_url, ConnectionOptions(max_connections=4)) as nodes:
        async with nodes.transaction() as other:
            await other.execute(HOLD_GRAPH, DEFAULT_TENANT)
            edits = [
                asyncio.create_task(let_follow(nodes, one, two)) for one, two in ((a, b), (b, a))
            ]
            await until_blocked(other)
        results = await asyncio.gather(*edits, return_exceptions=True)
    assert sum(isinstance(result, CycleDetected) for result in results) == 1
    assert len(await parents_of(database, a)) + len(await parents_of(database, b)) == 1


async def test_deleting_a_parent_pauses_who_follows_it_and_says_why(database: Database) -> None:
    parent, other = await make_jobs(database, 2)
    child = await make_child(database, After((parent.job_id, other.job_id)))
    resting = await make_child(database, After((parent.job_id,)))
    apart = await make_child(database, After((other.job_id,)))
    await pause(database, DEFAULT_TENANT, resting.job_id, changed_by="eve", note="holiday", now=NOW)
    await delete(database, DEFAULT_TENANT, parent.job_id, changed_by="bob", now=NOW + SECOND)
    stored = await get(database, DEFAULT_TENANT, child.job_id)
    assert stored.job.status is JobState.PAUSED
    assert stored.status_note == "'a', which it follows, was deleted"
    version = (await list_versions(database, DEFAULT_TENANT, child.job_id))[-1]
    assert (version.changed_by, version.valid_from) == ("bob", NOW + SECOND)
    assert (await get(database, DEFAULT_TENANT, resting.job_id)).status_note == "holiday"
    assert (await get(database, DEFAULT_TENANT, apart.job_id)).job.status is JobState.ACTIVE


async def test_a_job_whose_parent_is_deleted_goes_on_after_an_edit(database: Database) -> None:
    parent, other = await make_jobs(database, 2)
    child = await make_child(database, After((parent.job_id, other.job_id)))
    await delete(database, DEFAULT_TENANT, parent.job_id, changed_by="bob", now=NOW)
    with pytest.raises(InvalidSchedule, match="it follows 'a', deleted meanwhile"):
        await resume(database, DEFAULT_TENANT, child.job_id, changed_by="bob", now=NOW)
    job = follower(After((other.job_id,)), job_id=child.job_id, name=child.name)
    await update(database, job, changed_by="bob", now=NOW)
    resumed = await resume(database, DEFAULT_TENANT, child.job_id, changed_by="bob", now=NOW)
    assert resumed.job.status is JobState.ACTIVE


async def test_what_was_due_fires_before_the_parent_is_gone(database: Database) -> None:
    (parent,) = await make_jobs(database, 1)
    child = await make_child(database, After((parent.job_id,)))
    await database.execute(AN_END, child.job_id, parent.job_id, DEFAULT_TENANT, NOW)
    await delete(database, DEFAULT_TENANT, parent.job_id, changed_by="bob", now=NOW)
    assert len(await live_of(database, child.job_id)) == 1
    assert (await get(database, DEFAULT_TENANT, child.job_id)).job.status is JobState.PAUSED


async def test_a_deleted_job_follows_nobody(database: Database) -> None:
    parent = await make_parent(database)
    child = await make_child(database, After((parent.job_id,)))
    await delete(database, DEFAULT_TENANT, child.job_id, changed_by="bob", now=NOW)
    assert await parents_of(database, child) == {}


@pytest.mark.parametrize("trial", range(5))
async def test_a_parent_is_deleted_before_or_after_somebody_follows_it(
    database: Database, database_url: str, trial: int
) -> None:
    """At the same time: either there is nobody to follow, or the follower is paused."""
    (parent,) = await make_jobs(database, 1)
    job = follower(After((parent.job_id,)))
    async with Database(database_url, ConnectionOptions(max_connections=4)) as nodes:
        made, _ = await asyncio.gather(
            create(nodes, job, changed_by="alice", now=NOW),
            delete(nodes, DEFAULT_TENANT, parent.job_id, changed_by="bob", now=NOW),
            return_exceptions=True,
        )
    if isinstance(made, InvalidSchedule | TransactionConflict):
        assert await parents_of(database, job) == {}, trial
    else:
        stored = await get(database, DEFAULT_TENANT, job.job_id)
        assert stored.job.status is JobState.PAUSED


async def test_a_follower_in_the_making_keeps_its_parent_from_being_deleted(
    database: Database,
) -> None:
    (parent,) = await make_jobs(database, 1)
    child = (await create_job(database, new_job(name="child"))).job
    async with database.transaction() as other:
        await other.execute(sql("select from foliot.jobs where id = $1 for share"), parent.job_id)
        deletion = asyncio.create_task(
            delete(database, DEFAULT_TENANT, parent.job_id, changed_by="bob", now=NOW)
        )
        await until_blocked(other)
        await other.execute(
            sql("insert into foliot.job_parents values ($1, $2, $3, true)"),
            *(parent.job_id, child.job_id, DEFAULT_TENANT),
        )
    await deletion
    stored = await get(database, DEFAULT_TENANT, child.job_id, NOW)
    assert stored.job.status is JobState.PAUSED


async def test_whoever_would_follow_a_job_waits_for_its_deletion(database: Database) -> None:
    (parent,) = await make_jobs(database, 1)
    job = follower(After((parent.job_id,)))
    async with database.transaction() as other:
        await other.execute(
            sql("update foliot.jobs set status = 'DELETED' where id = $1"), parent.job_id
        )
        creation = asyncio.create_task(create(database, job, changed_by="alice", now=NOW))
        await until_blocked(other)
    with pytest.raises(InvalidSchedule):
        await creation
