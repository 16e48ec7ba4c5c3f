"""A handler called with its hooks: before, the handler, after, in that order.

Whatever is raised, even to leave Python, ends this attempt and nothing else. How a function is
invoked is the host's to say: here, on its loop or in a thread.
"""

import os
from collections.abc import Awaitable, Callable
from typing import Any

from foliot.worker.app import Hook, Prepared
from foliot.worker.hosts.attempt import Attempt
from foliot.worker.hosts.ends import end_of_error, end_of_result, trace_of
from foliot.worker.hosts.messages import End
from foliot.worker.tasks import LogSource

Invoke = Callable[[Callable[[], Any]], Awaitable[Any]]


async def call(handler: Prepared, attempt: Attempt, invoke: Invoke, invoke_hook: Invoke) -> End:
    process = os.getpid()
    error: BaseException | None = None
    try:
        arguments = handler.binding.arguments(attempt.task.payload, attempt.context)
        for hook in handler.before:
            await invoke_hook(lambda hook=hook: hook.function(attempt.context))  # type: ignore[misc]
        result = await invoke(lambda: handler.function(*arguments.positional, **arguments.named))
        end = end_of_result(attempt, result)
    except BaseException as raised:  # noqa: BLE001 - SystemExit and KeyboardInterrupt among them
        error = raised
        end = end_of_error(attempt, raised)
    if os.getpid() != process:
        os._exit(0)  # the handler has forked, and this is the copy that came back
    for hook in handler.after:
        await _after(hook, attempt, error, invoke_hook)
    attempt.flush()
    return end


async def _after(
    hook: Hook, attempt: Attempt, error: BaseException | None, invoke_hook: Invoke
) -> None:
    arguments = (attempt.context, error) if hook.takes_error else (attempt.context,)
    try:
        await invoke_hook(lambda: hook.function(*arguments))
    except BaseException as raised:  # noqa: BLE001 - it is told and changes nothing
        name = getattr(hook.function, "__name__", "?")
        attempt.log("ERROR", LogSource.LOG, f"the hook {name} failed: {trace_of(raised)}")
