"""What the ledger of some jobs is checked by: where they stand, the schedules they have had, and
the outcomes of their instants, page by page.

Jobs are read first and outcomes after that, so that everything before a job's next instant is there
to be found. Live executions are read before the history: one that finishes meanwhile is found in at
least one of the two.
"""

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import asyncpg

from foliot.core.ids import EPOCH, JobId, TenantId
from foliot.core.model import SkipReason
from foliot.core.schedule.occurrences import ScheduleFacts
from foliot.core.schedule.stretches import ScheduleVersion, Standing, Window
from foliot.core.schedule.timeline import TICK, Skip
from foliot.core.states import JobState
from foliot.store.database import Database
from foliot.store.execution_rows import SLACK
from foliot.store.staging import read_calendar, read_schedule
from foliot.store.statements import Statement, statement

_LIST_JOBS: Final = statement("ledger/list_jobs")
_READ_SCHEDULES: Final = statement("ledger/read_schedules")
_READ_LIVE: Final = statement("ledger/read_live")
_READ_ENDED: Final = statement("ledger/read_ended")
_READ_SKIPS: Final = statement("ledger/read_skips")
_READ_HORIZON: Final = statement("ledger/read_horizon")

# Of one answer: some forty milliseconds of counting, during which nothing else is done here.
ROWS: Final = 1000


@dataclass(frozen=True, slots=True)
class Horizon:
    """The time, and since when the history is whole; None: since ever."""

    now: datetime
    begins: datetime | None


async def read_horizon(database: Database, now: datetime | None = None) -> Horizon:
    (row,) = await database.fetch(_READ_HORIZON, now)
    return Horizon(row["now"], row["horizon"])


async def list_jobs(
    database: Database,
    tenant_id: TenantId | None,
    job_id: JobId | None,
    *,
    after: JobId | None,
    limit: int,
) -> list[Standing]:
    """One job; or a page of a tenant's, or of all there are. Deleted ones too."""
    async with database.transaction(tenant_id) as session:
        rows = await session.fetch(_LIST_JOBS, tenant_id, job_id, after, limit)
    return [
        Standing(
            job_id=JobId(row["job_id"]),
            tenant_id=TenantId(row["tenant_id"]),
            name=row["name"],
            status=JobState(row["status"]),
            version=row["version"],
            next_instant=row["next_instant"],
            next_run_at=row["next_run_at"],
            last_instant=row["last_instant"],
            fired_count=row["fired_count"],
            updated_at=row["updated_at"],
        )
        for row in rows
    ]


class Outcomes:
    """The rows of some jobs, as one tenant or as everybody. `rows` is how many were read."""

    def __init__(
        self, database: Database, tenant_id: TenantId | None, job_ids: Sequence[JobId]
    ) -> None:
        self._database = database
        self._tenant_id = tenant_id
        self._job_ids = job_ids
        self.rows = 0

    async def schedules(self) -> list[asyncpg.Record]:
        """Oldest first; `schedule_version_from` reads one."""
        async with self._database.transaction(self._tenant_id) as session:
            return await session.fetch(_READ_SCHEDULES, list(self._job_ids))

    def live(self, window: Window) -> AsyncIterator[list[asyncpg.Record]]:
        return self._pages(_READ_LIVE, "scheduled_time", window.from_ - TICK)

    def ended(self, window: Window) -> AsyncIterator[list[asyncpg.Record]]:
        """Nothing ends before its instant, but for clocks that are set back."""
        return self._pages(_READ_ENDED, "finished_at", max(EPOCH, window.from_ - SLACK))

    def skips(self, window: Window) -> AsyncIterator[list[asyncpg.Record]]:
        return self._pages(_READ_SKIPS, "from_instant", None, window.from_)

    async def _pages(
        self, read: Statement, place: str, begin: datetime | None, *more: object
    ) -> AsyncIterator[list[asyncpg.Record]]:
        """In each round the next rows of every job that may have some left."""
        pending: Mapping[JobId, datetime | None] = dict.fromkeys(self._job_ids, begin)
        while pending:
            limit = max(1, ROWS // len(pending))
            places = (list(pending), list(pending.values()))
            async with self._database.transaction(self._tenant_id) as session:
                rows = await session.fetch(read, *places, *more, limit)
            self.rows += len(rows)
            yield rows
            counts = Counter(row["job_id"] for row in rows)
            reached = {row["job_id"]: row[place] for row in sorted(rows, key=lambda r: r[place])}
            pending = {job: reached[job] for job in pending if counts[job] >= limit}


def schedule_version_from(row: asyncpg.Record) -> ScheduleVersion:
    calendar = row["calendar"]
    return ScheduleVersion(
        version=row["version"],
        schedule_version=row["schedule_version"],
        schedule=read_schedule(row["schedule"]),
        facts=ScheduleFacts(
            job_id=JobId(row["job_id"]),
            created_at=row["counted_from"],
            calendar=None if calendar is None else read_calendar(calendar),
            fired_count=row["fired_count"],
        ),
        valid_from=row["valid_from"],
        last_instant=row["last_instant"],
    )


def skip_from(row: asyncpg.Record) -> Skip:
    return Skip(row["from_instant"], row["to_instant"], row["count"], SkipReason(row["reason"]))
