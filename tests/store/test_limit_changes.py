"""A new limit also counts for what was there before it, and quotas become limits by themselves."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from foliot.core.ids import ExecutionId, TenantId, scheduled_execution
from foliot.core.model import ConcurrencyLimit, RateLimit
from foliot.scheduler.keep_limits import KeepLimits, KeptLimits
from foliot.store.admitting import admit_held
from foliot.store.claiming import ClaimRequest, claim
from foliot.store.database import Database
from foliot.store.enqueuing import Request, Wanted, enqueue
from foliot.store.firing import Fire, JobFire, fire_batch
from foliot.store.jobs import update
from foliot.store.limit_changes import SETTLED_SECONDS, list_changes
from foliot.store.releasing import release_due
from foliot.store.tenant_limits import apply_quotas, list_changed
from foliot.testing.database import sql
from foliot.testing.jobs import create_job, new_job
from foliot.testing.rows import (
    DEFAULT_TENANT,
    NOW,
    JobRow,
    make_execution,
    make_executions,
    make_job,
    make_tenant,
    make_worker,
)

LATER = NOW + timedelta(seconds=SETTLED_SECONDS)
SET_QUOTAS = sql("update foliot.tenants set quotas = $2::text::jsonb where id = $1")
LIMITS = sql("select key, max_running, rate_count, rate_seconds from foliot.limits order by key")
ROWS = sql(
    "select status, hold, limit_keys, rank is not null as ranked, queued_at is not null as queued"
    " from foliot.executions where id = $1"
)
FOLLOW = sql(
    "select foliot.follow(array[$1::uuid], array[$2::uuid], array[$3::timestamptz],"
    " array[null::text], $3)"
)
CHANGES = sql("select count(*) from foliot.limit_changes")


async def row(database: Database, execution_id: ExecutionId) -> tuple[Any, ...]:
    (found,) = await database.fetch(ROWS, execution_id)
    return tuple(found)


async def test_quotas_become_limits_and_go_with_them(database: Database) -> None:
    tenant = await make_tenant(database, quotas={"max_concurrent": 3, "executions_per_minute": 10})
    trade = KeepLimits(database)
    assert (await trade.run_once(NOW)).tenants == 1
    assert [tuple(each) for each in await database.fetch(LIMITS)] == [
        (f"tenant:{tenant}", 3, 20, 120.0)
    ]
    assert (await trade.run_once(NOW)).tenants == 0
    await database.execute(SET_QUOTAS, tenant, '{"max_concurrent": 4}')
    assert (await trade.run_once(NOW)).tenants == 1
    assert [tuple(each) for each in await database.fetch(LIMITS)] == [
        (f"tenant:{tenant}", 4, None, None)
    ]
    await database.execute(SET_QUOTAS, tenant, "{}")
    await trade.run_once(NOW)
    assert await database.fetch(LIMITS) == []


async def test_a_quota_that_cannot_be_kept_is_told_once_and_holds_nobody_up(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    broken = await make_tenant(database, quotas={"max_concurrent": "many"})
    good = await make_tenant(database, quotas={"max_concurrent": 1})
    trade = KeepLimits(database)
    for _ in range(3):
        await trade.run_once(NOW)
    assert [each["key"] for each in await database.fetch(LIMITS)] == [f"tenant:{good}"]
    told = [record.message for record in caplog.records if str(broken) in record.message]
    assert len(told) == 1
    assert "quotas.max_concurrent" in told[0]


async def test_tenants_are_walked_by_pages(database: Database) -> None:
    tenants = [await make_tenant(database, quotas={"max_concurrent": 1}) for _ in range(5)]
    found: list[TenantId] = []
    after, pages = None, 0
    while pages == 0 or after is not None:
        page = await list_changed(database, after, batch=2)
        found, after, pages = [*found, *page.changed], page.after, pages + 1
    assert (sorted(found), pages) == (sorted(tenants), 4), "with the default tenant they are six"


async def test_what_waited_and_ran_before_a_limit_comes_under_it(database: Database) -> None:
    tenant = await make_tenant(database)
    job = await make_job(database, tenant_id=tenant)
    key = f"tenant:{tenant}"
    cases = {
        ("QUEUED", None): ("WAITING", "LIMIT", [key], False, False),
        ("RUNNING", None): ("RUNNING", None, [key], True, True),
        ("PENDING", None): ("PENDING", None, [key], False, False),
        ("WAITING", "OVERLAP"): ("WAITING", "OVERLAP", [key], False, False),
    }
    rows = {
        case: await make_execution(database, job, status=case[0], hold=case[1]) for case in cases
    }
    theirs = await make_execution(database, await make_job(database))
    await database.execute(SET_QUOTAS, tenant, '{"max_concurrent": 2}')
    assert await KeepLimits(database, batch=2).run_once(NOW) == KeptLimits(1, 4)
    for case, expected in cases.items():
        assert await row(database, rows[case].execution_id) == expected
    assert (await row(database, theirs.execution_id))[2] is None
    assert len((await admit_held(database, now=NOW)).admitted) == 1


async def test_keys_stand_widest_first(database: Database) -> None:
    tenant = await make_tenant(database, quotas={"max_concurrent": 2})
    job = await make_job(database, tenant_id=tenant)
    keys = [f"job:{job.job_id}", f"key:{tenant}:k"]
    held = await make_execution(database, job, status="WAITING", hold="LIMIT", limit_keys=keys)
    await KeepLimits(database).run_once(NOW)
    assert (await row(database, held.execution_id))[2] == [f"tenant:{tenant}", *keys]


async def test_a_second_walk_finds_what_was_being_written(database: Database) -> None:
    tenant = await make_tenant(database, quotas={"max_concurrent": 1})
    job = await make_job(database, tenant_id=tenant)
    trade = KeepLimits(database)
    await trade.run_once(NOW)
    late = await make_execution(database, job)  # by somebody who did not know of the limit
    assert (await trade.run_once(NOW)).rows == 0, "nothing is walked over and over"
    assert await list_changes(database, LATER - timedelta(seconds=1)) == []
    assert (await trade.run_once(LATER)).rows == 1
    assert (await row(database, late.execution_id))[:2] == ("WAITING", "LIMIT")
    assert await database.fetch_value(CHANGES) == 0


async def test_a_row_in_use_is_left_to_the_second_walk(
    database: Database, database_url: str
) -> None:
    tenant = await make_tenant(database, quotas={"max_concurrent": 1})
    job = await make_job(database, tenant_id=tenant)
    rows = await make_executions(database, job, 2)
    trade = KeepLimits(database)
    async with Database(database_url) as other, other.transaction() as session:
        lock = sql("select from foliot.executions where id = $1 for no key update")
        await session.execute(lock, rows[0].execution_id)
        assert (await trade.run_once(NOW)).rows == 1
    assert (await trade.run_once(LATER)).rows == 1


@pytest.mark.parametrize("limited", ["tenant", "job"])
async def test_a_row_in_use_is_walked_for_until_it_is_free(
    database: Database, database_url: str, limited: str
) -> None:
    tenant = await make_tenant(database)
    stored = await create_job(database, new_job(tenant_id=tenant))
    asked = [Wanted(stored.job.job_id)] * 2
    made = await enqueue(database, Request(tenant, "test", "1", NOW), asked, NOW)
    if limited == "tenant":
        await database.execute(SET_QUOTAS, tenant, '{"max_concurrent": 1}')
    else:
        change = replace(stored.job, concurrency=ConcurrencyLimit(limit=1))
        await update(database, change, changed_by="bob", now=NOW)
    trade = KeepLimits(database)
    async with Database(database_url) as other, other.transaction() as session:
        lock = sql("select from foliot.executions where id = $1 for no key update")
        await session.execute(lock, made[0].execution_id)
        assert (await trade.run_once(NOW)).rows == 1
        assert (await trade.run_once(LATER)).rows == 0
    assert (await trade.run_once(LATER + timedelta(seconds=1))).rows == 1
    assert await database.fetch_value(CHANGES) == 0


async def test_a_change_that_is_not_done_holds_no_other_up(
    database: Database, database_url: str
) -> None:
    """Those that were walked last come last."""
    tenants = sorted([await make_tenant(database) for _ in range(2)])
    for tenant in tenants:
        await make_execution(database, await make_job(database, tenant_id=tenant))
        await database.execute(SET_QUOTAS, tenant, '{"max_concurrent": 1}')
    async with Database(database_url) as other, other.transaction() as session:
        await session.execute(
            sql("select from foliot.executions where tenant_id = $1 for no key update"), tenants[0]
        )
        for moment in (NOW, LATER):
            await KeepLimits(database).run_once(moment)
        await database.execute(SET_QUOTAS, tenants[1], "{}")
        await KeepLimits(database).run_once(LATER)
        await apply_quotas_anew(database, tenants[1])
        (first,) = await list_changes(database, LATER + timedelta(days=1), limit=1)
    assert first.key == f"tenant:{tenants[1]}"


async def apply_quotas_anew(database: Database, tenant: TenantId) -> None:
    await database.execute(SET_QUOTAS, tenant, '{"max_concurrent": 2}')
    await apply_quotas(database, tenant, LATER)


async def test_a_limit_that_is_raised_walks_over_nothing(database: Database) -> None:
    tenant = await make_tenant(database, quotas={"max_concurrent": 1})
    trade = KeepLimits(database)
    await trade.run_once(NOW)
    await trade.run_once(LATER)
    await database.execute(SET_QUOTAS, tenant, '{"max_concurrent": 2, "executions_per_minute": 5}')
    await trade.run_once(LATER)
    assert await database.fetch_value(CHANGES) == 0


async def test_new_rows_of_a_limited_tenant_wait_for_a_slot(database: Database) -> None:
    """Whoever writes them; the key of the tenant stands before those of the job."""
    tenant = await make_tenant(database, quotas={"max_concurrent": 2})
    await apply_quotas(database, tenant, NOW)
    job = await make_job(database, tenant_id=tenant)
    limited = await make_job(database, tenant_id=tenant, limit_keys=["job:x"])
    free = await make_job(database)
    await fire_batch(database, [due(each) for each in (job, limited, free)], now=NOW)
    await enqueue(database, Request(tenant, "test", "1", NOW), [Wanted(job.job_id)], NOW)
    child = await make_job(database, tenant_id=tenant)
    await database.fetch(FOLLOW, child.job_id, scheduled_execution(child.job_id, NOW), NOW)
    await release_due(database, now=NOW)
    held = "select limit_keys from foliot.executions where status = 'WAITING' and hold = 'LIMIT'"
    keys = sorted(each["limit_keys"] for each in await database.fetch(sql(held)))
    own = f"tenant:{tenant}"
    assert keys == [[own], [own], [own], [own, "job:x"]]
    assert len((await admit_held(database, now=NOW)).admitted) == 2


def due(job: JobRow) -> JobFire:
    next_at = NOW + timedelta(hours=1)
    fire = Fire(scheduled_execution(job.job_id, NOW), NOW, NOW)
    seen = (job.job_id, job.tenant_id, job.queue, NOW, job.schedule_version)
    return JobFire(*seen, (fire,), (), NOW, next_at, next_at)


@pytest.mark.parametrize(
    "change",
    [{"concurrency": ConcurrencyLimit(limit=1)}, {"rate_limit": RateLimit(1, 60)}],
)
async def test_the_first_limit_of_a_job_counts_for_what_waits_of_it(
    database: Database, change: dict[str, Any]
) -> None:
    stored = await create_job(database)
    asked = [Wanted(stored.job.job_id)] * 3
    made = await enqueue(database, Request(DEFAULT_TENANT, "test", "1", NOW), asked, NOW)
    other = await make_execution(database)
    await update(database, replace(stored.job, **change), changed_by="bob", now=NOW)
    assert (await KeepLimits(database, batch=2).run_once(NOW)).rows == 3
    for each in made:
        assert (await row(database, each.execution_id))[:3] == (
            *("WAITING", "LIMIT"),
            [f"job:{stored.job.job_id}"],
        )
    assert (await row(database, other.execution_id))[2] is None
    assert len((await admit_held(database, now=NOW)).admitted) == 1


async def test_a_new_job_with_a_limit_is_walked_by_nobody(database: Database) -> None:
    await create_job(database, replace(new_job(), concurrency=ConcurrencyLimit(limit=1)))
    assert await database.fetch_value(CHANGES) == 0


async def test_four_schedulers_at_once_and_claims_beside_them(
    database: Database, database_url: str
) -> None:
    tenant = await make_tenant(database, quotas={"max_concurrent": 3})
    job = await make_job(database, tenant_id=tenant)
    await make_executions(database, job, 300)
    worker = await make_worker(database)
    wanted = ClaimRequest(worker, "default", [job.lane_id], 1)
    async with Database(database_url) as nodes:
        trades = [KeepLimits(nodes, batch=50) for _ in range(4)]
        walks: Sequence[Any] = await asyncio.gather(
            *(trade.run_once() for trade in trades), *(claim(nodes, wanted) for _ in range(8))
        )
        await KeepLimits(database).run_once(NOW + timedelta(days=999))
    claimed = sum(len(each) for each in walks if not isinstance(each, KeptLimits))
    keyed = sql("select count(*) from foliot.executions where $1 = any(limit_keys)")
    assert await database.fetch_value(keyed, f"tenant:{tenant}") == 300
    await admit_held(database)
    holders = sql("select count(*) from foliot.executions where rank is not null")
    assert await database.fetch_value(holders) == max(3, claimed)
