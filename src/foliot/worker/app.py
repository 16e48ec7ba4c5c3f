"""The user's side: an App, and functions that become handlers of jobs by their name.

    app = App()

    @app.job
    async def send_mail(to: str, context: Context) -> None: ...

An async handler shares a loop with others, in a process apart from the worker's own; a sync one
has a process for itself while it runs. The functions stay what they are: a test may call them.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypeVar, overload

from foliot.core.errors import InvalidInput
from foliot.worker.binding import Binding, Handler

F = TypeVar("F", bound=Callable[..., Any])

NAME_CHARS_MAX: Final = 255


class Kind(StrEnum):
    """Where a handler runs."""

    LOOP = "loop"  # an async one, beside others on one loop
    PROCESS = "process"  # alone in a process while it runs
    THREAD = "thread"  # a sync one that was asked to share: it cannot be killed by itself


@dataclass(frozen=True, slots=True)
class Hook:
    function: Handler
    takes_error: bool = False


@dataclass(frozen=True, slots=True)
class Registered:
    """A handler, not yet looked at: the modules that it names may still be on their way."""

    name: str
    function: Handler
    kind: Kind
    app: "App"

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.function)

    @property
    def place(self) -> str:
        return _place_of(self.function)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A handler that can be called."""

    name: str
    function: Handler
    kind: Kind
    is_async: bool
    binding: Binding
    before: tuple[Hook, ...]
    after: tuple[Hook, ...]


class App:
    """A set of handlers, and the hooks around them."""

    def __init__(self) -> None:
        self._handlers: dict[str, Registered] = {}
        self._before: list[Hook] = []
        self._after: list[Hook] = []

    @property
    def handlers(self) -> Mapping[str, Registered]:
        return dict(self._handlers)

    @overload
    def job(self, function: F, /) -> F: ...

    @overload
    def job(
        self, /, *, name: str | None = None, in_process: bool = False, thread: bool = False
    ) -> Callable[[F], F]: ...

    def job(
        self,
        function: F | None = None,
        /,
        *,
        name: str | None = None,
        in_process: bool = False,
        thread: bool = False,
    ) -> F | Callable[[F], F]:
        """Makes a function a handler under its own name, or under `name`.

        `in_process` gives an async handler a process for itself, as a sync one has; `thread` lets
        a sync one share a process with others: cheaper to start, but if it does not stop when told,
        all that share its process begin anew.
        """

        def register(function: F) -> F:
            kind = _kind_of(function, in_process=in_process, thread=thread)
            self._register(Registered(name or function.__name__, function, kind, self))
            return function

        return register if function is None else register(function)

    def before(self, function: F) -> F:
        """A hook `before(context)`, sync or async; if it raises, the attempt fails with that."""
        _count_parameters(function, most=1)
        self._before.append(Hook(function))
        return function

    def after(self, function: F) -> F:
        """A hook `after(context)` or `after(context, error)`, where `error` is None if all went
        well. It runs in any case; what it raises is logged and changes nothing."""
        self._after.append(Hook(function, _count_parameters(function, most=2) == 2))
        return function

    def _register(self, handler: Registered) -> None:
        if not 0 < len(handler.name) <= NAME_CHARS_MAX or not handler.name.isprintable():
            raise InvalidInput(
                f"{handler.name!r} is not a name of a handler",
                field="name",
                hint=f"1 to {NAME_CHARS_MAX} printable characters",
            )
        known = self._handlers.get(handler.name)
        if known is not None:
            raise _twice(handler.name, known.place, handler.place)
        self._handlers[handler.name] = handler

    def prepare(self, handler: Registered) -> Prepared:
        try:
            binding = Binding(handler.function)
        except InvalidInput as refused:
            raise InvalidInput(
                f"handler {handler.name} at {handler.place}: {refused.reason}",
                field=refused.field,
                hint=refused.hint,
            ) from None
        return Prepared(
            handler.name,
            handler.function,
            handler.kind,
            handler.is_async,
            binding,
            tuple(self._before),
            tuple(self._after),
        )


def prepare_all(apps: list[App]) -> dict[str, Prepared]:
    """Every handler of these apps by its name; each name may be given once among all of them."""
    found: dict[str, Registered] = {}
    for app in apps:
        for name, handler in app.handlers.items():
            if name in found:
                raise _twice(name, found[name].place, handler.place)
            found[name] = handler
    return {name: handler.app.prepare(handler) for name, handler in found.items()}


def _twice(name: str, first: str, second: str) -> InvalidInput:
    return InvalidInput(
        f"two handlers are named {name!r}: {first} and {second}",
        field="name",
        hint="give one of them another: @app.job(name=…)",
    )


def _kind_of(function: Handler, *, in_process: bool, thread: bool) -> Kind:
    if not inspect.isroutine(function):
        raise InvalidInput(
            f"{function!r} is not a function", field="job", hint="write @app.job above a function"
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidInput(
            f"{function.__name__} yields, and a handler returns", hint="collect what it yields"
        )
    is_async = inspect.iscoroutinefunction(function)
    if thread and (in_process or is_async):
        other = "in_process" if in_process else "an async function"
        raise InvalidInput(
            f"a thread is not for {other}", field="thread", hint="leave one of the two out"
        )
    if thread:
        return Kind.THREAD
    return Kind.LOOP if is_async and not in_process else Kind.PROCESS


def _count_parameters(function: Handler, *, most: int) -> int:
    count = len(inspect.signature(function).parameters)
    if not 1 <= count <= most:
        takes = "the context" if most == 1 else "the context, and the error if it wants"
        raise InvalidInput(f"the hook at {_place_of(function)} takes {takes}")
    return count


def _place_of(function: Handler) -> str:
    code = inspect.unwrap(function).__code__ if hasattr(function, "__code__") else None
    if code is None:
        return repr(function)
    path = Path(code.co_filename)
    return f"{path.name}:{code.co_firstlineno} ({function.__module__}.{function.__qualname__})"
