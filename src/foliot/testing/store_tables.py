"""What the tables say, in the shape in which the model of the store says it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from foliot.core.ids import ExecutionId, JobId
from foliot.store.database import Database
from foliot.testing.database import sql
from foliot.testing.store_model import Record

_EMPTY: Final = sql(
    "with e as (delete from foliot.executions), a as (delete from foliot.attempts),"
    " d as (delete from foliot.dead_letters), s as (delete from foliot.skips),"
    " w as (delete from foliot.workers), q as (delete from foliot.queue_clocks),"
    " l as (delete from foliot.limits), j as (delete from foliot.jobs),"
    " v as (delete from foliot.job_versions), i as (delete from foliot.idempotency_keys) select 1"
)
_LIVE: Final = sql(
    "select id, status, hold, rank is not null as ranked, fence, attempt_number, worker_id,"
    " cancel_requested_at is not null as cancel_requested, available_at, start_by, run_alone,"
    " crash_count, scheduled_time from foliot.executions"
)
_HISTORY: Final = sql("select id, fence, attempt_number, status, final from foliot.attempts")
_DEAD: Final = sql("select id, reason, total_attempts from foliot.dead_letters")
_SKIPPED: Final = sql(
    "select job_id, reason, sum(count)::bigint as n from foliot.skips group by 1, 2"
)
_JOBS: Final = sql("select id, status from foliot.jobs")
# Instants with two outcomes: two executions, or an execution within a range of skips.
_TWICE: Final = sql("""
with fired as (
  select distinct job_id, id, scheduled_time from foliot.executions where trigger = 'SCHEDULE'
  union
  select distinct job_id, id, scheduled_time from foliot.attempts where trigger = 'SCHEDULE')
select job_id, scheduled_time from fired group by 1, 2 having count(*) > 1
union all
select f.job_id, f.scheduled_time from fired f join foliot.skips s on s.job_id = f.job_id
   and f.scheduled_time between s.from_instant and s.to_instant
union all
select a.job_id, a.from_instant from foliot.skips a join foliot.skips b on a.job_id = b.job_id
   and a.from_instant < b.from_instant and a.to_instant >= b.from_instant
""")


@dataclass(frozen=True, slots=True)
class Tables:
    """`live` has the columns of `store_model.Row`; `settled_twice` must be empty."""

    live: Mapping[ExecutionId, tuple[object, ...]]
    history: list[Record]
    dead: Mapping[ExecutionId, tuple[str, int]]
    skipped: Mapping[tuple[JobId, str], int]
    jobs: Mapping[JobId, str]
    settled_twice: list[tuple[JobId, datetime]]


async def empty_tables(database: Database) -> None:
    await database.execute(_EMPTY)


async def read_tables(database: Database) -> Tables:
    """One after another: nobody may be writing meanwhile."""
    return Tables(
        live={id_: tuple(columns) for id_, *columns in await database.fetch(_LIVE)},
        history=[_record(*row) for row in await database.fetch(_HISTORY)],
        dead={id_: (reason, total) for id_, reason, total in await database.fetch(_DEAD)},
        skipped={(id_, reason): n for id_, reason, n in await database.fetch(_SKIPPED)},
        jobs={row["id"]: row["status"] for row in await database.fetch(_JOBS)},
        settled_twice=[(id_, at) for id_, at in await database.fetch(_TWICE)],
    )


def _record(id_: ExecutionId, fence: int, attempt: int, status: str, final: bool) -> Record:
    return id_, fence, attempt, status, final
