"""Handlers as a user registers them, and their arguments as a payload gives them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID, uuid4

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

import foliot
from foliot import App, Context
from foliot.core.errors import InvalidInput
from foliot.worker.app import Kind, prepare_all
from foliot.worker.binding import Binding, InvalidPayload
from foliot.worker.context import Link
from foliot.worker.tasks import Task


def a_context(**link: Any) -> Context:  # noqa: ANN401 - any of its parts
    task = Task(
        execution_id=uuid4(),
        fence=7,
        attempt_number=2,
        max_attempts=2,
        tenant_id=uuid4(),
        job_id=uuid4(),
        job_name="nightly",
        handler="report",
        payload=None,
        timeout_seconds=60,
        cancel_grace_seconds=5,
        run_alone=False,
        scheduled_time=datetime(2026, 1, 1, tzinfo=UTC),
        idempotency_key="key",
        trigger="SCHEDULE",
    )
    parts: dict[str, Any] = {
        "seconds_left": lambda: 1.5,
        "is_cancelled": lambda: False,
        "progress": lambda _percent, _message: None,
    }
    return Context(task, Link(**parts | link))


CONTEXT = a_context()


def called_with(function: Callable[..., Any], payload: object) -> Any:  # noqa: ANN401
    arguments = Binding(function).arguments(payload, CONTEXT)
    return function(*arguments.positional, **arguments.named)


def refusal(function: Callable[..., Any], payload: object) -> str:
    with pytest.raises(InvalidPayload) as refused:
        Binding(function).arguments(payload, CONTEXT)
    return str(refused.value)


class Colour(StrEnum):
    RED = "red"


class Address(TypedDict):
    city: str


@dataclass
class Parcel:
    grams: int
    to: Address


class Order(BaseModel):
    number: int
    parcels: list[Parcel] = []


def test_a_handler_goes_by_its_functions_name_or_by_the_one_it_is_given() -> None:
    app = App()

    @app.job
    async def send_mail() -> None: ...

    @app.job(name="mail.count")
    def count() -> int:
        return 3

    assert set(app.handlers) == {"send_mail", "mail.count"}
    assert count() == 3


def test_a_name_given_twice_is_refused_with_both_places() -> None:
    app = App()

    @app.job
    def send() -> None: ...

    with pytest.raises(InvalidInput) as refused:

        @app.job(name="send")
        def other() -> None: ...

    assert str(refused.value).count("test_app.py:") == 2
    assert "send" in str(refused.value)
    assert "other" in str(refused.value)


def test_a_name_given_in_two_apps_is_refused_too() -> None:
    def send() -> None: ...

    one, two = App(), App()
    one.job(send)
    two.job(send)
    with pytest.raises(InvalidInput, match="two handlers are named 'send'"):
        prepare_all([one, two])


def test_where_a_handler_runs_follows_from_what_it_is() -> None:
    app = App()

    async def on_loop() -> None: ...

    def in_process() -> None: ...

    async def asked_for_process() -> None: ...

    def asked_for_thread() -> None: ...

    app.job(on_loop)
    app.job(in_process)
    app.job(in_process=True)(asked_for_process)
    app.job(thread=True)(asked_for_thread)
    assert {name: (one.kind, one.is_async) for name, one in prepare_all([app]).items()} == {
        "on_loop": (Kind.LOOP, True),
        "in_process": (Kind.PROCESS, False),
        "asked_for_process": (Kind.PROCESS, True),
        "asked_for_thread": (Kind.THREAD, False),
    }


def test_what_cannot_be_a_handler_is_refused() -> None:
    async def waits() -> None: ...

    def gives() -> Any:  # noqa: ANN401
        yield 1

    with pytest.raises(InvalidInput, match="thread"):
        App().job(thread=True)(waits)
    with pytest.raises(InvalidInput, match="yields"):
        App().job(gives)
    with pytest.raises(InvalidInput, match="not a function"):
        App().job(3)  # type: ignore[call-overload]
    for name in ("a\nb", "x" * 256):
        with pytest.raises(InvalidInput, match="not a name"):
            App().job(name=name)(gives_nothing)


def gives_nothing() -> None: ...


def test_an_object_becomes_keyword_arguments_converted_by_their_types() -> None:
    def handler(
        count: int, at: datetime, key: UUID, colour: Colour, *, order: Order, note: str = "none"
    ) -> tuple[object, ...]:
        return count, at, key, colour, order.parcels[0].to["city"], note

    key = uuid4()
    payload = {
        "count": "3",
        "at": "2026-01-01T00:00:00Z",
        "key": str(key),
        "colour": "red",
        "order": {"number": 1, "parcels": [{"grams": 5, "to": {"city": "Ulm"}}]},
    }
    expected = (3, datetime(2026, 1, 1, tzinfo=UTC), key, Colour.RED, "Ulm", "none")
    assert called_with(handler, payload) == expected


def test_a_value_alone_becomes_the_one_argument() -> None:
    def double(number: int, *, times: int = 2) -> int:
        return number * times

    assert called_with(double, 4) == 8
    assert called_with(double, {"number": 4, "times": 3}) == 12


@pytest.mark.parametrize("kind", [dict, Mapping[str, int], Annotated[dict[str, int], "counts"]])
def test_one_parameter_that_is_an_object_gets_the_whole_payload(kind: Any) -> None:  # noqa: ANN401
    def handler(counts: Any) -> object:  # noqa: ANN401
        return counts

    handler.__annotations__["counts"] = kind
    assert called_with(handler, {"a": 1, "counts": 2}) == {"a": 1, "counts": 2}


def test_a_model_or_dataclass_as_the_only_parameter_gets_the_whole_payload() -> None:
    def take_model(order: Order | None, context: Context) -> object:
        assert context is CONTEXT
        return order

    def take_parcel(parcel: Parcel) -> object:
        return parcel

    assert called_with(take_model, {"number": 1}) == Order(number=1)
    assert called_with(take_parcel, {"grams": 1, "to": {"city": "Ulm"}}) == Parcel(
        1, {"city": "Ulm"}
    )
    assert "order.number" in refusal(take_model, {})


def test_a_parameter_named_payload_gets_the_whole_payload_whatever_it_is() -> None:
    def handler(payload):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        return payload

    for payload in ({"a": 1}, [1, 2], "text", None):
        assert called_with(handler, payload) == payload


def test_no_payload_leaves_defaults_as_they_are() -> None:
    def handler(parcel: dict[str, int] | None = None) -> object:
        return parcel or "none"

    assert called_with(handler, None) == "none"
    assert called_with(gives_nothing, None) is None
    assert called_with(gives_nothing, {}) is None


def test_each_fault_of_a_payload_is_named_with_its_place() -> None:
    def handler(count: int, order: Order) -> None: ...

    found = refusal(handler, {"order": {"number": "x", "parcels": [{"grams": 1}]}, "extra": 1})
    for place in ("count: missing", "order.number: ", "order.parcels.0.to: ", "extra: unknown"):
        assert place in found


def test_a_value_beyond_its_bounds_is_named() -> None:
    def handler(percent: Annotated[int, Field(le=100)]) -> None: ...

    assert refusal(handler, {"percent": 101}).startswith("percent: ")


def test_a_value_alone_needs_one_parameter_to_go_to() -> None:
    def two(a: int, b: int) -> None: ...

    assert "the handler takes a, b, and the payload is a list" in refusal(two, [1, 2])
    assert "payload is text" in refusal(gives_nothing, "x")


def test_other_fields_go_where_they_are_wanted() -> None:
    def handler(a: int, **others: int) -> tuple[int, dict[str, int]]:
        return a, others

    assert called_with(handler, {"a": 1, "b": "2"}) == (1, {"b": 2})
    assert "b: " in refusal(handler, {"a": 1, "b": "x"})


def test_a_payload_cannot_stand_in_for_the_context() -> None:
    def handler(context: Context, **others: object) -> object:
        return context, others

    assert "context: unknown" in refusal(handler, {"context": 1})


def test_positional_only_parameters_are_given_by_position() -> None:
    def handler(a: int, /, b: int) -> tuple[int, int]:
        return a, b

    assert called_with(handler, {"a": 1, "b": 2}) == (1, 2)


def test_a_type_that_json_cannot_become_is_refused_before_the_first_run() -> None:
    class Engine: ...

    def drive(engine: Engine) -> None: ...

    def gather(*all_of_them: int) -> None: ...

    def guess(what: "NoSuchName") -> None: ...  # type: ignore[name-defined] # noqa: F821

    for function, words in ((drive, "engine"), (gather, "all_of_them"), (guess, "NoSuchName")):
        app = App()
        app.job(function)
        with pytest.raises(InvalidInput, match=words) as refused:
            prepare_all([app])
        assert "test_app.py:" in str(refused.value)


def test_a_class_may_be_defined_after_the_handler_that_names_it() -> None:
    assert called_with(takes_later, {"x": {"number": 1}, "y": 2}) == 1


def takes_later(x: "Later", y: int) -> int:  # noqa: ARG001
    return x.number


class Later(BaseModel):
    number: int


def test_the_context_tells_of_the_attempt() -> None:
    told: list[tuple[float | None, str]] = []
    context = a_context(progress=lambda percent, message: told.append((percent, message)))
    context.progress(40, "almost half")
    context.progress(None, "no idea")
    assert told == [(40.0, "almost half"), (None, "no idea")]
    assert (context.attempt_number, context.fence, context.job_name) == (2, 7, "nightly")
    assert context.is_last_attempt
    assert not context.cancelled
    assert context.deadline_seconds == 1.5
    assert a_context(seconds_left=lambda: -3.0).deadline_seconds == 0
    with pytest.raises(InvalidInput, match="percent"):
        context.progress(101)


def test_hooks_take_the_context_and_after_hooks_the_error_too() -> None:
    app = App()

    @app.before
    def begin(context: Context) -> None: ...

    @app.after
    async def finish(context: Context, error: BaseException | None) -> None: ...

    app.job(gives_nothing)
    (prepared,) = prepare_all([app]).values()
    assert [hook.function for hook in prepared.before] == [begin]
    assert [hook.takes_error for hook in prepared.after] == [True]
    with pytest.raises(InvalidInput, match="takes the context"):
        app.before(gives_nothing)


def test_what_users_import_is_listed_and_loaded_when_asked_for() -> None:
    assert sorted(foliot.__all__) == ["App", "Context", "DoNotRetry", "Snooze", "__version__"]
    for name in foliot.__all__:
        assert getattr(foliot, name)
    with pytest.raises(AttributeError):
        _ = foliot.Nothing  # type: ignore[attr-defined]
