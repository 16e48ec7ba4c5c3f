"""`/v1/schedules`: what a schedule means, before anything is saved."""

from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from foliot.api.answers import Answer
from foliot.api.auth import Visiting
from foliot.api.drafts import schedule_of
from foliot.api.schemas.schedules import PreviewBody
from foliot.api.views import preview_view
from foliot.core.errors import InvalidSchedule
from foliot.core.ids import JobId
from foliot.core.schedule.check import validate
from foliot.core.schedule.occurrences import ScheduleFacts, fires
from foliot.core.schedule.timeline import TICK
from foliot.store.calendars import find_calendar
from foliot.store.server_clock import read_clock

routes = APIRouter(prefix="/v1/schedules", tags=["schedules"])

# `H` stands for something else in every job: here, for what it is in none.
_NO_JOB = JobId(UUID(int=0))


@routes.post("/preview")
async def preview(visit: Visiting, body: PreviewBody) -> Response:
    """As if a job with this schedule were created at `after`."""
    schedule = await schedule_of(visit, body.schedule)
    after = body.after or await read_clock(visit.database)
    calendar = None
    if schedule.calendar is not None:
        calendar = await find_calendar(visit.database, visit.tenant_id, schedule.calendar)
        if calendar is None:
            raise InvalidSchedule(f"there is no calendar {schedule.calendar}", field="calendar")
    facts = ScheduleFacts(_NO_JOB, after, calendar)
    validate(schedule, facts)
    view = preview_view(schedule, fires(schedule, facts, after - TICK), body.count)
    return Answer(view).response()
