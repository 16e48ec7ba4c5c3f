"""Each stage alone, on one connection: only the waiting for the database is timed."""

import time
from collections.abc import Iterable, Iterator, Sequence
from uuid import uuid4

import asyncpg

from bench.contender import DAY, LONG_AGO, Call, Claimed, Contender, Due
from bench.servers import fresh_server


async def measure_stages(contender: Contender, jobs: int, batch: int) -> dict[str, float]:
    """Rows per second by stage."""
    async with fresh_server(contender, jobs, fill=False) as url:
        db = await asyncpg.connect(url)
        due = [Due(*row) for row in await contender.read_due(LONG_AGO, jobs).fetch(db)]
        _check(len(due) == jobs, f"{contender.name}: {len(due)} of {jobs} jobs are due")
        tomorrow = [Due(job_id, instant + DAY) for job_id, instant in due]
        rates = {
            "fire": jobs / await _seconds(db, map(contender.fire, batches(due, batch))),
            **await _claim_and_finish(contender, db, jobs, batch),
            "skip": jobs / await _seconds(db, map(contender.skip, batches(tomorrow, batch))),
            **await _enqueue_and_release(contender, db, due, batch),
        }
        await db.close()
    return rates


async def _claim_and_finish(
    contender: Contender, db: asyncpg.Connection, jobs: int, batch: int
) -> dict[str, float]:
    worker_id = uuid4()
    await contender.add_worker(db, worker_id)
    claimed: list[list[Claimed]] = []
    began, floor = time.perf_counter(), 0.0
    while rows := await contender.claim(worker_id, batch, floor).fetch(db):
        claimed.append([Claimed(*row) for row in rows])
        floor = raise_floor(floor, claimed[-1])
    claiming = time.perf_counter() - began
    _check(sum(map(len, claimed)) == jobs, f"{contender.name}: not every job was fired")
    finishing = await _seconds(db, (contender.finish(worker_id, rows) for rows in claimed))
    _check(await contender.count(db) == (0, jobs), f"{contender.name}: not all was finished")
    return {"claim": jobs / claiming, "finish": jobs / finishing}


async def _enqueue_and_release(
    contender: Contender, db: asyncpg.Connection, due: Sequence[Due], batch: int
) -> dict[str, float]:
    parts = [[row.job_id for row in part] for part in batches(due, batch)]
    enqueuing = await _seconds(
        db, (contender.enqueue(jobs, [uuid4() for _ in jobs]) for jobs in parts)
    )
    await contender.park().fetch(db)
    releasing = await _seconds(db, [contender.release(batch)] * len(parts))
    await contender.add_worker(db, worker_id := uuid4())
    rows = await contender.claim(worker_id, len(due), 0.0).fetch(db)
    _check(len(rows) == len(due), f"{contender.name}: not every row was released")
    return {"enqueue": len(due) / enqueuing, "release": len(due) / releasing}


async def _seconds(db: asyncpg.Connection, calls: Iterable[Call]) -> float:
    """How long the database took; the making of arguments is not its work."""
    total = 0.0
    for call in calls:
        began = time.perf_counter()
        await call.fetch(db)
        total += time.perf_counter() - began
    return total


def batches(due: Sequence[Due], batch: int) -> Iterator[list[Due]]:
    """Oldest first, each batch in the order of the jobs' ids: one lock order for all."""
    for start in range(0, len(due), batch):
        yield sorted(due[start : start + batch])


def raise_floor(floor: float, claimed: Sequence[Claimed]) -> float:
    """Below it are only the dead entries of what was claimed: for a store that keeps no clock."""
    return max(floor, min(row.rank for row in claimed) - 10 * len(claimed))


def _check(holds: bool, complaint: str) -> None:
    if not holds:
        raise RuntimeError(complaint)
