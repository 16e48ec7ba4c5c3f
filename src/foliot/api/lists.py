"""Lists as they are answered: a page of items, and the cursor of the next."""

from datetime import datetime
from typing import Any
from uuid import UUID

from foliot.api.answers import Answer, page_of
from foliot.api.auth import Visit
from foliot.api.pagination import Pages
from foliot.api.refusals import InvalidCursor
from foliot.api.schemas.queries import (
    JobExecutionQuery,
    JobQuery,
    ListQuery,
    LogQuery,
    WorkerQuery,
)
from foliot.api.schemas.shape import is_storable_text
from foliot.api.views import (
    end_view,
    job_view,
    log_view,
    queue_view,
    version_view,
    worker_view,
)
from foliot.core.ids import ExecutionId, JobId, WorkerId
from foliot.store.execution_rows import (
    ExecutionFilter,
    count_executions,
    list_executions,
)
from foliot.store.execution_views import execution_view
from foliot.store.fleet import WorkerPlace, count_workers, list_workers
from foliot.store.job_lists import (
    JobOrder,
    JobPage,
    JobPlace,
    check_was_made,
    count_jobs,
    count_versions,
    list_jobs,
    page_versions,
    place_of,
    read_recent_ends,
)
from foliot.store.logs import BEGINNING, LogCursor, LogFilter, count_lines, read_page
from foliot.store.queues import count_queues, list_queues


async def job_page(visit: Visit, query: JobQuery) -> Answer:
    pages = Pages(f"{visit.tenant_id} jobs {query.filters()}")
    wanted = query.wanted()
    after = _job_place(pages, query) if query.cursor else None
    page = JobPage(query.sort, after, query.limit + 1)
    found = await list_jobs(visit.database, visit.tenant_id, wanted, page)
    shown = found[: query.limit]
    ids = [stored.job.job_id for stored in shown]
    ends = await read_recent_ends(visit.database, visit.tenant_id, ids, query.recent or 1)
    total = await count_jobs(visit.database, visit.tenant_id, wanted) if query.count else None
    cursor = None
    if len(found) > query.limit:
        place = place_of(shown[-1], query.sort)
        value = place.value.isoformat() if isinstance(place.value, datetime) else place.value
        cursor = pages.cursor([value, str(place.job_id)])
    items = [job_view(each, ends[each.job.job_id]) for each in shown]
    if query.recent is not None:
        for item, each in zip(items, shown, strict=True):
            item["recent"] = [end_view(end) for end in ends[each.job.job_id]]
    return page_of(items, cursor, total)


async def version_page(visit: Visit, job_id: JobId, query: ListQuery) -> Answer:
    pages = Pages(f"{visit.tenant_id} versions {job_id}")
    before = _numbers(pages.place(query.cursor), 1)[0] if query.cursor else None
    found = await page_versions(
        visit.database, visit.tenant_id, job_id, before=before, limit=query.limit + 1
    )
    shown = found[: query.limit]
    more = len(found) > query.limit
    cursor = pages.cursor([shown[-1].job.version]) if more else None
    total = await count_versions(visit.database, visit.tenant_id, job_id) if query.count else None
    return page_of([version_view(each) for each in shown], cursor, total)


async def execution_page(
    visit: Visit, query: JobExecutionQuery, job_id: JobId | None, *, of_job: bool = False
) -> Answer:
    """With `of_job` a job that never was is not found, where otherwise its list is empty."""
    pages = Pages(f"{visit.tenant_id} executions {job_id} {query.filters()}")
    wanted: ExecutionFilter = query.wanted(job_id)
    before = ExecutionId(uuid_in(_single(pages.place(query.cursor)))) if query.cursor else None
    page = await list_executions(
        visit.database, visit.tenant_id, wanted, before=before, limit=query.limit + 1
    )
    found = page.executions
    if of_job and not found and job_id is not None:
        await check_was_made(visit.database, visit.tenant_id, job_id)
    shown = found[: query.limit]
    total = None
    if query.count:
        total = await count_executions(visit.database, visit.tenant_id, wanted)
    more = len(found) > query.limit
    last = shown[-1].execution_id if more else page.below
    cursor = pages.cursor([str(last)]) if last else None
    return page_of([execution_view(each) for each in shown], cursor, total)


async def log_page(visit: Visit, execution_id: ExecutionId, query: LogQuery) -> Answer:
    pages = Pages(f"{visit.tenant_id} logs {execution_id} {query.filters()}")
    after = BEGINNING
    if query.cursor:
        fence, seq = _numbers(pages.place(query.cursor), 2)
        after = LogCursor(fence, seq)
    wanted = LogFilter(query.level, query.search, query.attempt)
    found = await read_page(
        visit.database, visit.tenant_id, execution_id, after, wanted, query.limit + 1
    )
    shown = found.lines[: query.limit]
    more = len(found.lines) > query.limit
    cursor = pages.cursor([shown[-1].fence, shown[-1].seq]) if more else None
    total = None
    if query.count:
        total = await count_lines(visit.database, visit.tenant_id, execution_id, wanted)
    return page_of([log_view(line) for line in shown], cursor, total)


async def queue_page(visit: Visit, query: ListQuery) -> Answer:
    pages = Pages("queues")
    after = _text(_single(pages.place(query.cursor))) if query.cursor else None
    found = await list_queues(visit.database, after, limit=query.limit + 1)
    shown = found[: query.limit]
    cursor = pages.cursor([shown[-1].name]) if len(found) > query.limit else None
    total = await count_queues(visit.database) if query.count else None
    return page_of([queue_view(each) for each in shown], cursor, total)


async def worker_page(visit: Visit, query: WorkerQuery) -> Answer:
    pages = Pages(f"{visit.tenant_id} workers {query.filters()}")
    after = None
    if query.cursor:
        place = pair_in(pages.place(query.cursor))
        after = WorkerPlace(time_in(place[0]), WorkerId(uuid_in(place[1])))
    found = await list_workers(
        visit.database, visit.tenant_id, query.status or None, after=after, limit=query.limit + 1
    )
    shown = found[: query.limit]
    cursor = None
    if len(found) > query.limit:
        cursor = pages.cursor([shown[-1].registered_at.isoformat(), str(shown[-1].worker_id)])
    total = None
    if query.count:
        total = await count_workers(visit.database, visit.tenant_id, query.status or None)
    return page_of([worker_view(each) for each in shown], cursor, total)


def _job_place(pages: Pages, query: JobQuery) -> JobPlace:
    place = pair_in(pages.place(query.cursor or ""))
    value: datetime | str | None = None
    if query.sort is JobOrder.NAME:
        value = _text(place[0])
    elif place[0] is not None:
        value = time_in(place[0])
    return JobPlace(value, JobId(uuid_in(place[1])))


# Anyone can make up a cursor with the right checksum: what it holds is looked at like any input.


def uuid_in(value: object) -> UUID:
    try:
        return UUID(str(value))
    except ValueError:
        raise InvalidCursor("is not a cursor") from None


def time_in(value: object) -> datetime:
    try:
        told = datetime.fromisoformat(str(value))
    except ValueError:
        raise InvalidCursor("is not a cursor") from None
    if told.tzinfo is None:
        raise InvalidCursor("is not a cursor")
    return told


def _text(value: object) -> str:
    if not isinstance(value, str) or not is_storable_text(value):
        raise InvalidCursor("is not a cursor")
    return value


def _single(place: list[Any]) -> object:
    return place[0] if len(place) == 1 else None


def pair_in(place: list[Any]) -> list[Any]:
    if len(place) != 2:
        raise InvalidCursor("is not a cursor")
    return place


def _numbers(place: list[Any], count: int) -> list[int]:
    if len(place) != count or not all(type(each) is int and 0 <= each < 2**31 for each in place):
        raise InvalidCursor("is not a cursor")
    return place
