"""From a job's payload to a handler's arguments, by the handler's own signature.

An object gives keyword arguments, anything else the one argument; each value is checked and
converted by its annotation. A handler whose only parameter is itself an object (a dict, a
dataclass, a model) or is named `payload` gets the whole payload. Names and types are looked up
once, when all modules are imported, so that a handler may name a class that is defined below it.
"""

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import (
    BaseModel,
    PydanticUndefinedAnnotation,
    PydanticUserError,
    TypeAdapter,
    ValidationError,
)

from foliot.core.errors import InvalidInput
from foliot.core.model import Json
from foliot.worker.context import Context

_WHOLE: Final = "payload"
_REASONS_MAX: Final = 5
Handler = Callable[..., Any]


@dataclass(eq=False)
class InvalidPayload(InvalidInput):
    """The payload does not fit the handler's parameters."""


@dataclass(frozen=True, slots=True)
class Arguments:
    positional: tuple[Any, ...] = ()
    named: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Parameter:
    name: str
    adapter: TypeAdapter[Any] | None  # None: anything goes
    is_required: bool
    is_positional: bool


class Binding:
    """How one handler is called."""

    def __init__(self, function: Handler) -> None:
        hints = _hints_of(function)
        self._parameters: dict[str, _Parameter] = {}
        self._context: str | None = None
        self._rest: TypeAdapter[Any] | None = None
        self._takes_rest = False
        self._whole: _Parameter | None = None
        for parameter in inspect.signature(function).parameters.values():
            self._add(parameter, hints.get(parameter.name, Any))
        named = list(self._parameters.values())
        if len(named) == 1 and not self._takes_rest:
            (only,) = named
            if only.name == _WHOLE or _is_object(hints.get(only.name, Any)):
                self._whole = only

    def _add(self, parameter: inspect.Parameter, hint: object) -> None:
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            raise InvalidInput(
                "a handler cannot take any number of arguments",
                field=f"*{parameter.name}",
                hint="name each, or take **fields",
            )
        if _is_context(hint):
            if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
                raise InvalidInput(
                    "the context is passed by name", field=parameter.name, hint="put it after the /"
                )
            self._context = parameter.name
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            self._takes_rest, self._rest = True, _adapter(parameter.name, hint)
        else:
            self._parameters[parameter.name] = _Parameter(
                parameter.name,
                _adapter(parameter.name, hint),
                parameter.default is inspect.Parameter.empty,
                parameter.kind is inspect.Parameter.POSITIONAL_ONLY,
            )

    def arguments(self, payload: Json, context: Context) -> Arguments:
        """What to call the handler with, or InvalidPayload that names each field at fault."""
        named: dict[str, Any] = {} if self._context is None else {self._context: context}
        if self._whole is not None and (payload is not None or self._whole.is_required):
            given = {self._whole.name: payload}
        elif payload is None:
            given = {}
        elif isinstance(payload, dict):
            given = payload
        else:
            given = self._the_one(payload)
        if not given and not self._parameters:
            return Arguments((), named)
        return self._convert(given, named)

    def _the_one(self, payload: Json) -> dict[str, Any]:
        required = [one for one in self._parameters.values() if one.is_required]
        taking = required or list(self._parameters.values())
        if len(taking) != 1:
            names = ", ".join(self._parameters) or "no payload"
            raise InvalidPayload(
                f"the handler takes {names}, and the payload is {_kind(payload)}",
                field="payload",
                hint="send an object with these fields" if self._parameters else "send none",
            )
        return {taking[0].name: payload}

    def _convert(self, given: Mapping[str, Any], named: dict[str, Any]) -> Arguments:
        positional: list[Any] = []
        faults: list[tuple[str, str]] = []
        for name, parameter in self._parameters.items():
            if name not in given:
                if parameter.is_required:
                    faults.append((name, "missing"))
                continue
            value = _checked(name, parameter.adapter, given[name], faults)
            if parameter.is_positional:
                positional.append(value)
            else:
                named[name] = value
        for name in given.keys() - self._parameters.keys():
            if self._takes_rest and name != self._context:
                named[name] = _checked(name, self._rest, given[name], faults)
            else:
                takes = ", ".join(self._parameters) or "no fields"
                faults.append((name, f"unknown field, the handler takes {takes}"))
        if faults:
            raise _refusal(faults)
        return Arguments(tuple(positional), named)


def _refusal(faults: list[tuple[str, str]]) -> InvalidPayload:
    faults.sort()
    shown = "; ".join(f"{place}: {reason}" for place, reason in faults[:_REASONS_MAX])
    more = f" and {len(faults) - _REASONS_MAX} more" if len(faults) > _REASONS_MAX else ""
    first, _, rest = f"{shown}{more}".partition(": ")
    return InvalidPayload(rest, field=first)


def _checked(
    name: str, adapter: TypeAdapter[Any] | None, value: object, faults: list[tuple[str, str]]
) -> object:
    if adapter is None:
        return value
    try:
        return adapter.validate_python(value)
    except ValidationError as refused:
        for error in refused.errors(include_url=False, include_context=False, include_input=False):
            place = ".".join([name, *(str(part) for part in error["loc"])])
            faults.append((place, error["msg"]))
        return None


def _hints_of(function: Handler) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise InvalidInput(
            f"its annotations cannot be read: {error}", hint="annotate with names of its module"
        ) from None


def _adapter(name: str, hint: Any) -> TypeAdapter[Any] | None:  # noqa: ANN401 - any annotation
    if hint is Any:
        return None
    try:
        return TypeAdapter(hint)
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        reason = str(error).splitlines()[0]
        raise InvalidInput(
            f"JSON cannot become its type: {reason}",
            field=name,
            hint="use plain types, dataclasses, TypedDict or pydantic models",
        ) from None


def _is_context(hint: object) -> bool:
    return hint is Context or Context in _members(hint)


def _is_object(hint: object) -> bool:
    """Whether a value of this type is a JSON object as a whole."""
    for one in (hint, *_members(hint)):
        kind = typing.get_origin(one) or one
        if isinstance(kind, type) and (
            issubclass(kind, Mapping | BaseModel)
            or dataclasses.is_dataclass(kind)
            or typing.is_typeddict(kind)
        ):
            return True
    return False


def _members(hint: object) -> tuple[object, ...]:
    """The members of a union, or what `Annotated` is about."""
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        return typing.get_args(hint)[:1]
    return typing.get_args(hint) if origin in {typing.Union, types.UnionType} else ()


def _kind(payload: Json) -> str:
    match payload:
        case bool():
            return "a boolean"
        case str():
            return "text"
        case list():
            return "a list"
        case _:
            return "a number"
