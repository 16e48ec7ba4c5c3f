"""When a job fires, as it is written in requests."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, model_validator

from foliot.api.aliases import expand_schedule
from foliot.api.schemas.shape import Shape, Text, Time, TimeInReach, Word, taken_as_utc, word_of
from foliot.core.errors import InvalidSchedule
from foliot.core.ids import JobId
from foliot.core.model import (
    After,
    AfterMode,
    AfterOn,
    DstGap,
    DstOverlap,
    MisfirePolicy,
    OverlapPolicy,
    Schedule,
    ScheduleType,
)

PREVIEW_FIRES_MAX = 1000


class AfterBody(Shape):
    jobs: Annotated[list[Word], Field(min_length=1, max_length=1000)]
    mode: Annotated[AfterMode, word_of(AfterMode)] = AfterMode.ALL
    on: Annotated[AfterOn, word_of(AfterOn)] = AfterOn.SUCCEEDED


class ScheduleBody(Shape):
    type: Annotated[ScheduleType, word_of(ScheduleType)]
    cron_expression: Annotated[Text, Field(max_length=1000)] | None = None
    timezone: Annotated[Text, Field(max_length=100)] = "UTC"
    interval_seconds: float | None = None
    run_at: Time | None = None
    delay_seconds: float | None = None
    after: AfterBody | None = None
    start_at: Time | None = None
    end_at: Time | None = None
    max_runs: int | None = None
    jitter_seconds: float = 0
    calendar: Word | None = None
    dst_gap: Annotated[DstGap, word_of(DstGap)] = DstGap.RUN_AFTER_GAP
    dst_overlap: Annotated[DstOverlap, word_of(DstOverlap)] = DstOverlap.FIRST
    misfire_policy: Annotated[MisfirePolicy, word_of(MisfirePolicy)] = MisfirePolicy.FIRE_ONCE
    misfire_max_runs: int = 100
    misfire_grace_seconds: float | None = None
    overlap_policy: Annotated[OverlapPolicy, word_of(OverlapPolicy)] = OverlapPolicy.SKIP

    def parents(self) -> list[str]:
        """The jobs it names, as they were written."""
        return self.after.jobs if self.after else []

    def schedule(self, job_ids: Mapping[str, JobId]) -> Schedule:
        """A time without an offset is UTC, unless the schedule has another zone to mean."""
        values: dict[str, Any] = {name: getattr(self, name) for name in type(self).model_fields}
        if self.after is not None:
            jobs = tuple(_job_id(job, job_ids) for job in self.after.jobs)
            values["after"] = After(jobs, self.after.mode, self.after.on)
        if self.timezone == "UTC":
            for name in ("run_at", "start_at", "end_at"):
                values[name] = taken_as_utc(values[name]) if values[name] else None
        return Schedule(**values)


class PreviewBody(Shape):
    schedule: ScheduleBody
    after: TimeInReach | None = None
    count: Annotated[int, Field(ge=1, le=PREVIEW_FIRES_MAX)] = 10

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, given: object) -> object:
        if isinstance(given, dict) and "schedule" in given:
            return given | {"schedule": expand_schedule(given["schedule"])}
        return given


def _job_id(written: str, job_ids: Mapping[str, JobId]) -> JobId:
    if written not in job_ids:
        raise InvalidSchedule(f"there is no job {written}", field="after.jobs")
    return job_ids[written]
