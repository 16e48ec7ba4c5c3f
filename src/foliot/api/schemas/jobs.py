"""Jobs as they are written in requests."""

from dataclasses import fields
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from foliot.api import aliases
from foliot.api.schemas.schedules import ScheduleBody
from foliot.api.schemas.shape import (
    Address,
    Labels,
    Priority,
    Shape,
    Text,
    Word,
    word_of,
)
from foliot.core.concurrency_keys import check_key_template
from foliot.core.errors import InvalidInput
from foliot.core.limits import check_concurrency_limit, check_rate_limit
from foliot.core.model import (
    Backoff,
    CommandTarget,
    ConcurrencyLimit,
    DeadLetterPolicy,
    HandlerTarget,
    HttpTarget,
    ManagedBy,
    RateLimit,
    RetryPolicy,
    Target,
)
from foliot.core.retry_policy import check_retry_policy
from foliot.core.states import JobState

SECONDS_MAX = 366 * 86_400.0

Seconds = Annotated[float, Field(gt=0, le=SECONDS_MAX)]
Tags = Annotated[list[Word], Field(max_length=64)]

# Fields of a job that Foliot sets: they are there when a job is read, and not for the caller.
READ_ONLY = frozenset(
    {
        "job_id",
        "tenant_id",
        "status",
        "status_note",
        "created_by",
        "next_run_at",
        "last_run_at",
        "stats",
        "created_at",
        "updated_at",
    }
)


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


class HttpBody(Shape):
    type: Literal["HTTP"]
    url: Address
    method: Annotated[
        Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"], BeforeValidator(_upper)
    ] = "POST"
    headers: Annotated[
        dict[Word, Annotated[Text, Field(max_length=8000)]], Field(max_length=100)
    ] = Field(default_factory=dict)

    def target(self) -> Target:
        return HttpTarget(self.url, self.method, self.headers)


class HandlerBody(Shape):
    type: Literal["HANDLER"]
    name: Word

    def target(self) -> Target:
        return HandlerTarget(self.name)


def _argv(given: object) -> object:
    if isinstance(given, str):
        raise PydanticCustomError(
            "not_a_list",
            "is a text, and there is no shell that would read it",
            {"hint": 'write a list: ["/usr/bin/backup", "--all"]'},
        )
    return given


class CommandBody(Shape):
    type: Literal["COMMAND"]
    argv: Annotated[list[Text], Field(min_length=1, max_length=1000), BeforeValidator(_argv)]
    env: Annotated[dict[Word, Text], Field(max_length=100)] = Field(default_factory=dict)

    def target(self) -> Target:
        return CommandTarget(tuple(self.argv), self.env)


def _target_type(given: object) -> object:
    if isinstance(given, dict) and isinstance(given.get("type"), str):
        return given | {"type": given["type"].upper()}
    return given


TargetBody = Annotated[
    Annotated[HttpBody | HandlerBody | CommandBody, Field(discriminator="type")],
    BeforeValidator(_target_type),
]


class RetryPolicyBody(Shape):
    max_attempts: int = 4
    backoff: Annotated[Backoff, word_of(Backoff)] = Backoff.EXPONENTIAL
    initial_delay_seconds: float = 1
    multiplier: float = 2
    max_delay_seconds: float = 60
    jitter: float = 0.25
    max_crashes: int = 3
    poison_window_seconds: float | None = None

    def policy(self) -> RetryPolicy:
        made = RetryPolicy(**{one.name: getattr(self, one.name) for one in fields(RetryPolicy)})
        check_retry_policy(made)
        return made


class ConcurrencyBody(Shape):
    key: Text | None = None
    limit: int | None = None

    def concurrency(self) -> ConcurrencyLimit:
        check_concurrency_limit(self.limit)
        if self.key is not None:
            check_key_template(self.key)
            if self.limit is None:
                raise InvalidInput(
                    "is missing", field="concurrency.limit", hint="say how many may run at once"
                )
        return ConcurrencyLimit(self.key, self.limit)


class RateLimitBody(Shape):
    count: int | None = None
    period_seconds: float | None = None

    def rate_limit(self) -> RateLimit:
        made = RateLimit(self.count, self.period_seconds)
        check_rate_limit(made)
        return made


class DeadLetterBody(Shape):
    auto_replay_after_seconds: Seconds | None = None

    def dead_letter(self) -> DeadLetterPolicy:
        return DeadLetterPolicy(self.auto_replay_after_seconds)


class JobBody(Shape):
    """A whole job, in the one shape or with any of the aliases."""

    known_besides: ClassVar[frozenset[str]] = aliases.NAMES
    set_by_us: ClassVar[frozenset[str]] = READ_ONLY

    name: Word | None = None
    description: Annotated[Text, Field(max_length=10_000)] = ""
    schedule: ScheduleBody
    target: TargetBody
    payload: Any = None
    retry_policy: RetryPolicyBody = RetryPolicyBody()
    timeout_seconds: Seconds = 300
    cancel_grace_seconds: Annotated[float, Field(ge=0, le=86_400)] = 30
    start_deadline_seconds: Seconds | None = None
    priority: Priority = 5
    queue: Word = "default"
    requires: Tags = Field(default_factory=list)
    region: Word | None = None
    concurrency: ConcurrencyBody = ConcurrencyBody()
    rate_limit: RateLimitBody = RateLimitBody()
    dead_letter: DeadLetterBody = DeadLetterBody()
    callback_url: Address | None = None
    tags: Tags = Field(default_factory=list)
    labels: Labels = Field(default_factory=dict)
    managed_by: Annotated[ManagedBy, word_of(ManagedBy)] = ManagedBy.API
    version: Annotated[int, Field(ge=1)] | None = None
    idempotency_key: Text | None = None

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, given: object) -> object:
        return aliases.expand_job(given) if isinstance(given, dict) else given


class WholeJobBody(JobBody):
    """A job as it was read and changed: what Foliot sets may stay in it and is passed over."""

    @model_validator(mode="before")
    @classmethod
    def _pass_over(cls, given: object) -> object:
        if not isinstance(given, dict):
            return given
        return {name: value for name, value in given.items() if name not in READ_ONLY}


class StatusBody(Shape):
    """PATCH with a status: pause or resume."""

    status: Annotated[JobState, word_of(JobState)]
    note: Annotated[Text, Field(max_length=1000)] | None = None
    version: Annotated[int, Field(ge=1)] | None = None


class NoteBody(Shape):
    note: Annotated[Text, Field(max_length=1000)] | None = None
    version: Annotated[int, Field(ge=1)] | None = None
    idempotency_key: Text | None = None
