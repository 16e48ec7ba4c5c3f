"""What becomes of the ends of parents while their child is paused, edited, or late."""

from datetime import timedelta

import pytest

from foliot.core.model import After, MisfirePolicy
from foliot.core.states import JobState
from foliot.store.completions import follow
from foliot.store.database import Database
from foliot.store.jobs import pause, resume, update
from foliot.testing.following import (
    end_one,
    follower,
    live_of,
    make_child,
    make_parent,
    skips_of,
)
from foliot.testing.rows import DEFAULT_TENANT, NOW

SECOND = timedelta(seconds=1)


async def test_what_ends_while_the_child_is_paused_fires_once_when_it_goes_on(
    database: Database,
) -> None:
    parent = await make_parent(database)
    child = await make_child(database, After((parent.job_id,)))
    await pause(database, DEFAULT_TENANT, child.job_id, changed_by="bob", now=NOW)
    for minute in range(3):
        await end_one(database, parent, at=NOW + minute * 60 * SECOND)
        assert (await follow(database, now=NOW + minute * 60 * SECOND)).fired == ()
    now = NOW + timedelta(hours=3)
    await resume(database, DEFAULT_TENANT, child.job_id, changed_by="bob", now=now)
    (live,) = await live_of(database, child.job_id)
    assert (live["scheduled_time"], live["available_at"]) == (NOW + 120 * SECOND, now)
    assert (await follow(database, now=now)).fired == ()
    assert await skips_of(database, child.job_id) == []


@pytest.mark.parametrize(("late", "missed"), [(60, False), (61, True)])
async def test_who_skips_what_is_late_skips_it_after_a_pause_too(
    database: Database, late: int, missed: bool
) -> None:
    parent = await make_parent(database)
    child = await make_child(database, After((parent.job_id,)), misfire_policy=MisfirePolicy.SKIP)
    await pause(database, DEFAULT_TENANT, child.job_id, changed_by="bob", now=NOW)
    await end_one(database, parent)
    now = NOW + late * SECOND
    await resume(database, DEFAULT_TENANT, child.job_id, changed_by="bob", now=now)
    assert len(await live_of(database, child.job_id)) == (0 if missed else 1)
    assert await skips_of(database, child.job_id) == ([(NOW, "PAUSED")] if missed else [])


async def test_who_skips_what_is_late_skips_it_after_an_outage(database: Database) -> None:
    parent = await make_parent(database)
    child = await make_child(database, After((parent.job_id,)), misfire_policy=MisfirePolicy.SKIP)
    await end_one(database, parent)
    assert (await follow(database, now=NOW + 61 * SECOND)).skipped == (child.job_id,)
    assert await skips_of(database, child.job_id) == [(NOW, "MISFIRE")]


async def test_what_is_due_fires_before_the_child_is_paused(database: Database) -> None:
    parent = await make_parent(database)
    child = await make_child(database, After((parent.job_id,)))
    await end_one(database, parent)
    stored = await pause(database, DEFAULT_TENANT, child.job_id, changed_by="bob", now=NOW)
    assert stored.job.status is JobState.PAUSED
    assert len(await live_of(database, child.job_id)) == 1
    await resume(database, DEFAULT_TENANT, child.job_id, changed_by="bob", now=NOW)
    assert len(await live_of(database, child.job_id)) == 1


async def test_an_edit_of_a_paused_child_skips_what_it_missed(database: Database) -> None:
    parent, other = await make_parent(database), await make_parent(database)
    child = await make_child(database, After((parent.job_id,)))
    await pause(database, DEFAULT_TENANT, child.job_id, changed_by="bob", now=NOW)
    await end_one(database, parent)
    job = follower(After((other.job_id,)), job_id=child.job_id, name=child.name)
    await update(database, job, changed_by="bob", now=NOW + SECOND)
    assert await skips_of(database, child.job_id) == [(NOW, "PAUSED")]
    await resume(database, DEFAULT_TENANT, child.job_id, changed_by="bob", now=NOW + SECOND)
    assert await live_of(database, child.job_id) == []
