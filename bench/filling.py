"""Jobs by the million, put straight into the tables: what creating them one by one would leave.

All of one crop are alike but for their ids and instants. An interval begins a day before the first
instant, so it must divide a day.
"""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import uuid4

import asyncpg

from foliot.core.ids import JobId, shard_of
from foliot.core.model import Schedule
from foliot.store.definitions import schedule_as_json
from foliot.store.tenants import DEFAULT_TENANT

PART: Final = 50_000
TABLES: Final = ("foliot.jobs", "foliot.job_versions", "foliot.job_names", "foliot.executions")

ADD_LANE: Final = """
insert into foliot.lanes (queue, target_type, handler) values ('default', 'HANDLER', $1)
    on conflict do nothing"""
READ_LANE: Final = "select id from foliot.lanes where handler = $1"
ADD_JOBS: Final = """
insert into foliot.jobs (id, tenant_id, shard, status, version, schedule_version, next_instant,
                         next_run_at, queue, lane_id, priority, overlap_policy, name, created_at,
                         updated_at)
select x.id, $3, x.shard, 'ACTIVE', 1, 1, d.at, d.at, 'default', $4, 5, $5, 'job-' || x.id,
       d.at - interval '1 day', d.at - interval '1 day'
  from unnest($1::uuid[], $2::smallint[]) with ordinality x(id, shard, n)
 cross join lateral (select $6::timestamptz + (x.n - 1) * $7::interval) d(at)"""
ADD_VERSIONS: Final = """
insert into foliot.job_versions (job_id, tenant_id, version, schedule_version, status, definition,
                                 changed_by, valid_from)
select x.id, $2, 1, 1, 'ACTIVE', $3::text::jsonb, 'bench', now() from unnest($1::uuid[]) x(id)"""
ADD_NAMES: Final = """
insert into foliot.job_names (tenant_id, name, job_id)
select $2, 'job-' || x.id, x.id from unnest($1::uuid[]) x(id)"""


@dataclass(frozen=True, slots=True)
class Crop:
    """So many jobs; the first is due at `first`, each further one `apart` later."""

    count: int
    schedule: Schedule
    first: datetime
    apart: timedelta = timedelta(0)
    handler: str = "tell_time"

    @property
    def definition(self) -> str:
        return json.dumps(
            {
                "name": "one of many",
                "queue": "default",
                "priority": 5,
                "schedule": schedule_as_json(self.schedule),
                "target": {"type": "HANDLER", "name": self.handler},
            }
        )


async def sow(db: asyncpg.Connection, crop: Crop) -> int:
    """The lane of all of them."""
    await db.execute(ADD_LANE, crop.handler)
    lane_id: int = await db.fetchval(READ_LANE, crop.handler)
    policy = str(crop.schedule.overlap_policy)
    for start in range(0, crop.count, PART):
        ids = [JobId(uuid4()) for _ in range(min(PART, crop.count - start))]
        shards = [shard_of(job_id) for job_id in ids]
        first = crop.first + start * crop.apart
        await db.execute(ADD_JOBS, ids, shards, DEFAULT_TENANT, lane_id, policy, first, crop.apart)
        await db.execute(ADD_VERSIONS, ids, DEFAULT_TENANT, crop.definition)
        await db.execute(ADD_NAMES, ids, DEFAULT_TENANT)
    return lane_id
