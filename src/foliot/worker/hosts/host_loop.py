"""The event loop of a host. It notes which attempt has started which process, so that what an
attempt on a shared loop leaves behind is ended with it."""

from typing import Any

import uvloop

from foliot.worker.hosts.attempt import CURRENT


class HostLoop(uvloop.Loop):
    async def subprocess_exec(self, *what: Any, **options: Any) -> Any:  # noqa: ANN401 - as it comes
        return _noted(await super().subprocess_exec(*what, **options))

    async def subprocess_shell(self, *what: Any, **options: Any) -> Any:  # noqa: ANN401
        return _noted(await super().subprocess_shell(*what, **options))


def _noted(started: tuple[Any, Any]) -> tuple[Any, Any]:
    """The process comes first, then what speaks with it."""
    attempt = CURRENT.get()
    if attempt is not None:
        attempt.processes.append(started[0])
    return started
