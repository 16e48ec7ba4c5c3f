"""What can be asked of lists. Values come as text and are read as what they stand for."""

from typing import Annotated, Any, ClassVar
from uuid import UUID

from pydantic import BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from foliot.api.pagination import CURSOR_CHARS_MAX, LIMIT_DEFAULT, LIMIT_MAX
from foliot.api.schemas.shape import Priority, Shape, Text, UtcTime, Word, word_of
from foliot.core.errors import InvalidInput
from foliot.core.ids import DagRunId, JobId, WorkerId
from foliot.core.model import ScheduleType, TargetType, Trigger
from foliot.core.states import ExecutionState, JobState, WorkerState
from foliot.store.execution_rows import ExecutionFilter
from foliot.store.job_lists import JobFilter, JobOrder
from foliot.store.job_references import as_uuid

LABEL = "label."
RECENT_MAX = 100
DURATION_MS_MAX = 3_153_600_000_000  # a hundred years


def _several(value: object) -> object:
    """`a,b` and a name that comes twice are both two values."""
    values = value if isinstance(value, list) else [value]
    return [
        part for each in values for part in (each.split(",") if isinstance(each, str) else [each])
    ]


def _listed(value: object) -> object:
    return value if isinstance(value, list) else [value]


Words = Annotated[list[Word], BeforeValidator(_listed)]


class ListQuery(Shape):
    """Every list has pages. `page=` would mean numbered ones, which move while one reads."""

    model_config = ConfigDict(strict=False)

    limit: Annotated[int, Field(ge=1, le=LIMIT_MAX)] = LIMIT_DEFAULT
    cursor: Annotated[Text, Field(max_length=CURSOR_CHARS_MAX)] | None = None
    count: bool = False

    @model_validator(mode="before")
    @classmethod
    def _refuse_page(cls, given: object) -> object:
        if isinstance(given, dict) and "page" in given:
            raise PydanticCustomError(
                "no_page",
                "there are no numbered pages",
                {"name": "page", "hint": "pass next_cursor of an answer as cursor"},
            )
        return given

    def filters(self) -> str:
        """All that says which list it is, so that a cursor leads to no other."""
        return repr(self.model_dump(exclude={"limit", "cursor", "count", "recent"}))


class LabelledQuery(ListQuery):
    label: Annotated[
        Words, Field(description="KEY=VALUE; also written as label.KEY=VALUE in the address")
    ] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _gather_labels(cls, given: object) -> object:
        if not isinstance(given, dict):
            return given
        written = [name for name in given if isinstance(name, str) and name.startswith(LABEL)]
        if not written:
            return given
        labels = [f"{name.removeprefix(LABEL)}={given[name]}" for name in written]
        rest: dict[str, Any] = {name: given[name] for name in given if name not in written}
        return rest | {"label": labels + _list_of(rest.get("label"))}

    def labels(self) -> dict[str, str] | None:
        pairs = [each.partition("=") for each in self.label]
        if any(not key or not equals for key, equals, _ in pairs):
            raise InvalidInput("is not KEY=VALUE", field="label", hint="write label.KEY=VALUE")
        return {key: value for key, _, value in pairs} or None


class JobQuery(LabelledQuery):
    known_besides: ClassVar[frozenset[str]] = frozenset({"label.KEY"})

    status: Annotated[list[Annotated[JobState, word_of(JobState)]], BeforeValidator(_several)] = (
        Field(default_factory=list)
    )
    last_status: Annotated[ExecutionState, word_of(ExecutionState)] | None = None
    tag: Words = Field(default_factory=list)
    name: Word | None = None
    queue: Word | None = None
    target_type: Annotated[TargetType, word_of(TargetType)] | None = None
    schedule_type: Annotated[ScheduleType, word_of(ScheduleType)] | None = None
    created_by: Word | None = None
    search: Word | None = None
    sort: Annotated[JobOrder, word_of(JobOrder)] = JobOrder.CREATED_AT
    recent: Annotated[int, Field(ge=1, le=RECENT_MAX)] | None = Field(
        None, description="add this many of the last outcomes to each job"
    )

    def wanted(self) -> JobFilter:
        return JobFilter(
            statuses=self.status or None,
            last_status=self.last_status,
            tags=self.tag or None,
            labels=self.labels(),
            name_prefix=self.name,
            queue=self.queue,
            target_type=self.target_type,
            schedule_type=self.schedule_type,
            created_by=self.created_by,
            search=self.search,
        )


class JobExecutionQuery(LabelledQuery):
    """Of one job."""

    known_besides: ClassVar[frozenset[str]] = frozenset({"label.KEY"})

    status: Annotated[
        list[Annotated[ExecutionState, word_of(ExecutionState)]], BeforeValidator(_several)
    ] = Field(default_factory=list)
    trigger: Annotated[list[Annotated[Trigger, word_of(Trigger)]], BeforeValidator(_several)] = (
        Field(default_factory=list)
    )
    queue: Word | None = None
    tag: Words = Field(default_factory=list)
    worker_id: Word | None = None
    trace_id: Word | None = None
    dag_run_id: Word | None = None
    priority: Priority | None = None
    handler: Word | None = None
    error: Word | None = Field(None, description="part of the error's type or message")
    retried: bool | None = Field(None, description="whether it took, or takes, another attempt")
    min_duration_ms: Annotated[float, Field(ge=0, le=DURATION_MS_MAX)] | None = Field(
        None, description="of what runs, until now"
    )
    from_: UtcTime | None = Field(None, alias="from", description="first scheduled_time")
    to: UtcTime | None = Field(None, description="first scheduled_time that is left out")

    @model_validator(mode="before")
    @classmethod
    def _rename_dates(cls, given: object) -> object:
        if not isinstance(given, dict):
            return given
        renamed = dict(given)
        for name, field in (("start_date", "from"), ("end_date", "to")):
            if name in renamed:
                renamed.setdefault(field, renamed.pop(name))
        return renamed

    def wanted(self, job_id: JobId | None) -> ExecutionFilter:
        return ExecutionFilter(
            job_id=job_id,
            statuses=self.status or None,
            triggers=self.trigger or None,
            queue=self.queue,
            from_=self.from_,
            to=self.to,
            worker_id=WorkerId(meant_id(self.worker_id)) if self.worker_id else None,
            tags=self.tag or None,
            labels=self.labels(),
            trace_id=self.trace_id,
            priority=self.priority,
            dag_run_id=DagRunId(meant_id(self.dag_run_id)) if self.dag_run_id else None,
            handler=self.handler,
            error=self.error,
            retried=self.retried,
            min_duration_seconds=(
                None if self.min_duration_ms is None else self.min_duration_ms / 1000
            ),
        )


class ExecutionQuery(JobExecutionQuery):
    job_id: Word | None = None


class WorkerQuery(ListQuery):
    status: Annotated[
        list[Annotated[WorkerState, word_of(WorkerState)]], BeforeValidator(_several)
    ] = Field(default_factory=list)


class LogQuery(ListQuery):
    level: Word | None = None
    search: Word | None = None
    attempt: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None


class NextQuery(Shape):
    model_config = ConfigDict(strict=False)

    count: Annotated[int, Field(ge=1, le=1000)] = 10


def _list_of(value: object) -> list[Any]:
    return [] if value is None else value if isinstance(value, list) else [value]


def meant_id(text: str) -> UUID:
    """The id that was written; for what is no id, one that nothing has."""
    return as_uuid(text) or UUID(int=0)
