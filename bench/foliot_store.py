"""Foliot's own store as a contender: the packaged statements, as the services send them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID, uuid4

import asyncpg

from bench.contender import DAY, RESULT, Call, Claimed, Due
from foliot.core.ids import JobId, scheduled_execution
from foliot.runtime.clock import SystemClock
from foliot.store.claiming import BACK_SECONDS, Look
from foliot.store.migrate import migrate
from foliot.store.statements import statement

TENANT: Final = UUID("00000000-0000-8000-8000-000000000001")
QUEUE: Final = "default"
LANE: Final = 1

FIRE: Final = statement("jobs/fire_due").sql
# It passes over what is locked and replaces nothing; now, whenever that was decided.
ORDERS: Final = (False, False, None, None)
CLAIM: Final = statement("executions/claim_ready").sql
FINISH: Final = statement("executions/finish").sql
ENQUEUE: Final = statement("executions/enqueue").sql
RELEASE: Final = statement("executions/release_due").sql

ADD_LANE: Final = """
insert into foliot.lanes (queue, target_type, handler) values ('default', 'HANDLER', 'noop')"""

ADD_JOBS: Final = """
insert into foliot.jobs (id, tenant_id, shard, status, version, schedule_version, next_instant,
                         next_run_at, queue, lane_id, priority, overlap_policy, name, created_at,
                         updated_at)
select gen_random_uuid(), $2, n % 64, 'ACTIVE', 1, 1, d.at, d.at, 'default', 1, 5, 'SKIP',
       'job-' || n, now(), now()
  from generate_series(1, $1::integer) n
 cross join lateral (select now() - interval '100 s' + n * interval '100 us') d(at)"""

FILL_QUEUE: Final = """
insert into foliot.executions (id, tenant_id, job_id, job_version, status, trigger, queue, lane_id,
                               priority, rank, scheduled_time, available_at, queued_at, job_name,
                               created_at)
select gen_random_uuid(), j.tenant_id, j.id, j.version, 'QUEUED', 'SCHEDULE', j.queue, j.lane_id,
       j.priority, row_number() over (order by j.next_run_at), j.next_run_at, j.next_run_at, now(),
       j.name, now()
  from foliot.jobs j"""

ADD_WORKER: Final = """
insert into foliot.workers (id, name, host, version, status, queues, capacity, registered_at,
                            last_heartbeat_at)
values ($1, 'bench', 'bench', '0', 'ACTIVE', '{default}', 1000, now(), now())"""

READ_DUE: Final = """
select id, next_instant from foliot.jobs
 where shard = any($1::smallint[]) and status = 'ACTIVE' and next_run_at <= now()
   and next_run_at >= $2
 order by next_run_at limit $3"""

PARK: Final = """
update foliot.executions set status = 'PENDING', rank = null, available_at = now()
 where worker_id is null"""
COUNT: Final = """
select (select count(*) from foliot.executions), (select count(*) from foliot.attempts)"""


class FoliotStore:
    """One queue, one lane, one tenant: what a herd of one user's jobs looks like."""

    name = "foliot"

    async def install(self, url: str) -> None:
        await migrate(url, SystemClock())

    async def add_jobs(self, db: asyncpg.Connection, count: int) -> None:
        await db.execute(ADD_LANE)
        await db.execute(ADD_JOBS, count, TENANT)

    async def add_worker(self, db: asyncpg.Connection, worker_id: UUID) -> None:
        await db.execute(ADD_WORKER, worker_id)

    async def fill_queue(self, db: asyncpg.Connection) -> None:
        await db.execute(FILL_QUEUE)

    async def count(self, db: asyncpg.Connection) -> tuple[int, int]:
        live, history = (await db.fetch(COUNT))[0]
        return live, history

    def tables(self) -> tuple[str, ...]:
        return "foliot.jobs", "foliot.executions"

    def read_due(self, low: datetime, limit: int) -> Call:
        return Call(READ_DUE, (list(range(64)), low, limit))

    def fire(self, due: Sequence[Due]) -> Call:
        ids = [scheduled_execution(JobId(row.job_id), row.instant) for row in due]
        fires = (None, None, ids, None, None)
        return Call(FIRE, (*self._advance(due), None, None, *fires, *([],) * 5, *ORDERS))

    def skip(self, due: Sequence[Due]) -> Call:
        instants, count = [row.instant for row in due], len(due)
        skips = (list(range(1, count + 1)), instants, instants, [1] * count, ["MISFIRE"] * count)
        none: tuple[object, ...] = ([0] * count, None, *([],) * 5)
        return Call(FIRE, (*self._advance(due), *none, *skips, *ORDERS))

    def claim(self, worker_id: UUID, bite: int, floor: float) -> Call:  # noqa: ARG002  the store keeps its own
        return self.claim_looking(worker_id, bite, Look.NEAR)

    def claim_looking(self, worker_id: UUID, bite: int, look: Look) -> Call:
        return Call(CLAIM, (worker_id, QUEUE, [LANE], bite, BACK_SECONDS[look], None))

    def finish(self, worker_id: UUID, claimed: Sequence[Claimed]) -> Call:
        rows = sorted(claimed)
        held = (worker_id, [row.id for row in rows], [row.fence for row in rows])
        return Call(FINISH, (*held, None, [RESULT] * len(rows), *(None,) * 8))

    def enqueue(self, jobs: Sequence[UUID], requests: Sequence[UUID]) -> Call:
        request = (TENANT, "bench", str(uuid4()), b"")
        asked = (list(requests), list(jobs), ["API"] * len(jobs))
        return Call(ENQUEUE, (*request, *asked, *(None,) * 15))

    def park(self) -> Call:
        return Call(PARK, ())

    def release(self, limit: int) -> Call:
        return Call(RELEASE, (None, limit, None))

    def _advance(self, due: Sequence[Due]) -> tuple[object, ...]:
        """The jobs as they were seen, and their next instants, without jitter."""
        seen = ([row.job_id for row in due], None, [row.instant for row in due], [1] * len(due))
        later = [row.instant + DAY for row in due]
        return [QUEUE], [TENANT], *seen, later, None, None, None
