"""The ledger as it is asked for: as many jobs as one request has time for, and where to go on."""

from typing import Any, Final

from foliot.api.auth import Visit
from foliot.api.ledger_view import report_view
from foliot.api.pagination import Pages
from foliot.api.refusals import InvalidCursor
from foliot.api.schemas.ledger import VerifyBody
from foliot.core.errors import InvalidInput, JobNotFound
from foliot.core.ids import JobId
from foliot.core.schedule.ledger import Report
from foliot.store.job_lists import check_was_made
from foliot.store.job_references import as_uuid, resolve_jobs
from foliot.store.ledger import JOBS, Scope, TooManyOutcomes, check_page, open_scope

PROBLEMS_NAMED: Final = 200
# Outcomes that one request looks at: some seconds of work.
ROWS_MAX: Final = 100_000


async def verify(visit: Visit, body: VerifyBody) -> dict[str, Any]:
    job_id = await _job_id(visit, body.job) if body.job else None
    scope = await open_scope(
        visit.database, tenant_id=visit.tenant_id, job_id=job_id, from_=body.from_, to=body.to
    )
    asked = [str(each) for each in (job_id, body.from_, body.to)]
    pages = Pages(f"{visit.tenant_id} ledger {asked}")
    after = _place(pages, body.cursor) if body.cursor else None
    report = Report(PROBLEMS_NAMED)
    after = await _check(visit, scope, report, after)
    cursor = pages.cursor([str(after)]) if after else None
    return report_view(scope, report) | {"next_cursor": cursor}


async def _check(visit: Visit, scope: Scope, report: Report, after: JobId | None) -> JobId | None:
    """Until all is checked or the time is up; then, the last job that was."""
    left, limit = ROWS_MAX, JOBS
    while True:
        try:
            page = await check_page(visit.database, scope, after=after, limit=limit, rows_max=left)
        except TooManyOutcomes:
            if report.jobs:
                return after
            if limit == 1 or scope.job_id is not None:
                raise _too_long() from None
            limit = max(1, limit // 10)
            continue
        for ledger in page.ledgers:
            report.add(ledger)
        left -= page.rows
        after = page.last
        if after is None or left <= 0:
            return after


async def _job_id(visit: Visit, written: str) -> JobId:
    """By id also a job that was deleted, and by name one that is there."""
    found = as_uuid(written)
    if found is not None:
        try:
            await check_was_made(visit.database, visit.tenant_id, JobId(found))
        except JobNotFound:
            pass
        else:
            return JobId(found)
    return (await resolve_jobs(visit.database, visit.tenant_id, [written]))[written].job_id


def _too_long() -> InvalidInput:
    return InvalidInput(
        f"a job has more than {ROWS_MAX} outcomes in this time",
        field="from",
        hint="give a later from or an earlier to, or use `foliot ledger verify`",
    )


def _place(pages: Pages, cursor: str) -> JobId:
    place = pages.place(cursor)
    found = as_uuid(str(place[0])) if len(place) == 1 else None
    if found is None:
        raise InvalidCursor("is not a cursor")
    return JobId(found)
