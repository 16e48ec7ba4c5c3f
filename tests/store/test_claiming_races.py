"""Claims that others interfere with: rivals, rankers, and claimers that freeze or die."""

import asyncio
from collections.abc import Sequence
from uuid import uuid4

import pytest

from foliot.core.ids import WorkerId
from foliot.store.claiming import Claim, ClaimRequest, claim
from foliot.store.database import Database
from foliot.store.errors import TransactionConflict
from foliot.testing.database import sql
from foliot.testing.rows import (
    DEFAULT_TENANT,
    NOW,
    make_execution,
    make_executions,
    make_job,
    make_tenant,
    make_worker,
)
from foliot.testing.running import until_blocked

# What this transaction has walked over so far, before anybody's statistics.
TOUCHED = sql("""
select coalesce(pg_stat_get_xact_tuples_returned('foliot.executions'::regclass), 0) as scanned,
       coalesce(pg_stat_get_xact_tuples_returned('foliot.executions_claim'::regclass), 0)
       + coalesce(pg_stat_get_xact_tuples_returned('foliot.executions_flow'::regclass), 0) as walked
""")
CLAIMED_AT = sql("select claimed_at from foliot.executions where id = $1")


def wanted(worker: WorkerId, lanes: Sequence[int], bite: int = 100) -> ClaimRequest:
    return ClaimRequest(worker, "default", lanes, bite)


def ids(claims: Sequence[Claim]) -> set[str]:
    return {str(each.execution_id) for each in claims}


async def test_eight_claimers_never_share_an_execution(
    database: Database, database_url: str
) -> None:
    job = await make_job(database)
    made = await make_executions(database, job, 2000)

    async def drain(lane_ids: Sequence[int]) -> list[Claim]:
        found: list[Claim] = []
        async with Database(database_url) as own:
            worker = await make_worker(own)
            while got := await claim(own, wanted(worker, lane_ids, bite=37)):
                found += got
        return found

    drained = await asyncio.gather(*(drain([job.lane_id]) for _ in range(8)))
    claims = [got for each in drained for got in each]
    assert len(claims) == 2000
    assert ids(claims) == {str(each.execution_id) for each in made}
    assert {got.fence for got in claims} == {1}


async def test_rows_that_are_ranked_while_others_claim_are_not_missed(
    database: Database, database_url: str
) -> None:
    """Enqueuers rank behind the virtual time that they see; claimers move it all the while."""
    jobs = [await make_job(database, priority=priority) for priority in (1, 5, 10)]
    number, rounds = 6, 15
    enqueued: set[str] = set()
    done = asyncio.Event()

    async def enqueue(seed: int) -> None:
        async with Database(database_url) as own:
            for step in range(rounds):
                job = jobs[(seed + step) % 3]
                made = [str(uuid4()) for _ in range(8)]
                await own.execute(ENQUEUE, made, job.job_id, job.lane_id, job.priority)
                enqueued.update(made)

    async def work() -> list[Claim]:
        found: list[Claim] = []
        async with Database(database_url) as own:
            worker = await make_worker(own)
            while True:
                last = done.is_set()
                got = await claim(own, wanted(worker, [jobs[0].lane_id], bite=11))
                found += got
                if last and not got:
                    return found

    async def produce() -> None:
        await asyncio.gather(*(enqueue(seed) for seed in range(number)))
        done.set()

    workers = [asyncio.create_task(work()) for _ in range(3)]
    await produce()
    claims = [got for each in await asyncio.gather(*workers) for got in each]
    assert len(claims) == len(enqueued) == number * rounds * 8
    assert ids(claims) == enqueued


ENQUEUE = sql("""
with locked as materialized (
  select foliot.lock_flows(array['default'], array['00000000-0000-8000-8000-000000000001'::uuid])),
ranks as materialized (
  select i.n, s.start + s.step * i.n as rank
    from locked cross join lateral foliot.flow_starts(
      array['default'], array[$3::integer],
      array['00000000-0000-8000-8000-000000000001'::uuid], array[$4::smallint]) s
   cross join generate_series(1, cardinality($1::uuid[])) i(n))
insert into foliot.executions
  (id, tenant_id, job_id, job_version, status, trigger, queue, lane_id, priority, rank,
   scheduled_time, available_at, queued_at, job_name, created_at)
select i.id, '00000000-0000-8000-8000-000000000001', $2, 1, 'QUEUED', 'ENQUEUE', 'default', $3, $4,
       r.rank, statement_timestamp(), statement_timestamp(), statement_timestamp(), 'job',
       statement_timestamp()
  from unnest($1::uuid[]) with ordinality i(id, n) join ranks r on r.n = i.n
""")


@pytest.mark.parametrize("bound", [False, True], ids=["every tenant's", "one tenant's"])
async def test_a_claim_walks_over_nothing_but_what_it_takes(
    database: Database, bound: bool
) -> None:
    """Statistics of an empty table, then 20,000 rows that may not run and 3,000 that may."""
    await database.execute(sql("analyze foliot.executions"))
    job = await make_job(database)
    other = await make_job(database, tenant_id=await make_tenant(database))
    await database.execute(FILL, job.job_id, job.tenant_id, job.lane_id, "PENDING", 20_000)
    for each in (job, other):
        await database.execute(FILL, each.job_id, each.tenant_id, job.lane_id, "QUEUED", 3_000)
    worker = await make_worker(database, tenant_id=DEFAULT_TENANT if bound else None)
    async with database.transaction() as session:
        claim_sql = sql("select * from foliot.claim($1, 'default', $2, 50, 10, $3)")
        for turn in range(1, 8):
            assert len(await session.fetch(claim_sql, worker, [job.lane_id], NOW)) == 50
            touched = await session.fetch_row(TOUCHED)
            assert touched is not None
            assert touched["scanned"] == 0
            # Within one transaction what was claimed before is still in the way: 50 more each turn.
            assert touched["walked"] <= turn * (turn * 50 + 60)


FILL = sql("""
insert into foliot.executions
  (id, tenant_id, job_id, job_version, status, trigger, queue, lane_id, priority, rank,
   scheduled_time, available_at, queued_at, job_name, created_at)
select gen_random_uuid(), $2::uuid, $1::uuid, 1, $4::text, 'ENQUEUE', 'default', $3::integer, 5,
       case $4::text when 'QUEUED' then n end,
       statement_timestamp(), statement_timestamp(), statement_timestamp(), 'job',
       statement_timestamp()
  from generate_series(1, $5::integer) n
""")
LOCK = sql("select pg_advisory_xact_lock(21, hashtext('default'))")


async def until_claimed(database: Database, worker: WorkerId, lane: int) -> float:
    """Claim again and again, as a worker does; how long the first success took."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    while True:
        try:
            got = await claim(database, wanted(worker, [lane]))
        except TransactionConflict:
            continue
        assert got
        return loop.time() - began


async def test_a_claimer_that_froze_with_the_lock_blocks_others_for_two_seconds(
    database: Database, database_url: str
) -> None:
    """A session that holds the queue's lock and says nothing more, like a stopped process."""
    worker, made = await make_worker(database), await make_execution(database)
    async with Database(database_url) as frozen, frozen.connection() as session:
        await session.begin()
        await session.execute(LOCK)
        assert await until_claimed(database, worker, made.lane_id) < 3.0


async def test_a_claimer_that_was_killed_with_the_lock_blocks_nobody(
    database: Database, database_url: str
) -> None:
    worker, made = await make_worker(database), await make_execution(database)
    async with Database(database_url) as doomed, doomed.connection() as session:
        await session.begin()
        await session.execute(LOCK)
        pid = await session.fetch_value(sql("select pg_backend_pid()"))
        await database.execute(sql("select pg_terminate_backend($1)"), pid)
        assert await until_claimed(database, worker, made.lane_id) < 1.0


async def test_claims_of_one_queue_come_one_after_another(
    database: Database, database_url: str
) -> None:
    worker, made = await make_worker(database), await make_execution(database)
    other = await make_execution(database, await make_job(database, queue="other"))
    async with Database(database_url) as rival, rival.transaction() as session:
        await session.execute(LOCK)
        waiting = asyncio.create_task(claim(database, wanted(worker, [made.lane_id])))
        await until_blocked(session, waiting)
        elsewhere = await claim(database, ClaimRequest(worker, "other", [other.lane_id], 1))
        assert len(elsewhere) == 1, "another queue has its own turn"
    assert len(await waiting) == 1


async def test_an_execution_is_claimed_no_earlier_than_it_could_be_seen(
    database: Database, database_url: str
) -> None:
    """A claim that is held up must not say it took what was let go only later: two executions
    under a limit of one would seem to run at once."""
    worker, job = await make_worker(database), await make_job(database)
    async with Database(database_url) as rival, rival.transaction() as session:
        await session.execute(sql("lock table foliot.queues in access exclusive mode"))
        claiming = asyncio.create_task(claim(database, wanted(worker, [job.lane_id])))
        await until_blocked(session)
        made = await make_execution(rival, job)
        let_go_at = await session.fetch_value(sql("select clock_timestamp()"))
    assert len(await claiming) == 1
    claimed_at = await database.fetch_value(CLAIMED_AT, made.execution_id)
    assert claimed_at > let_go_at
