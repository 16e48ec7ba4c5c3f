"""The port on which a role without an API says how it gets on, if one was asked for; and what a
worker says there."""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from typing import Final

from foliot.core.errors import FoliotError, InvalidInput
from foliot.runtime.health import Check, Readiness, health_port
from foliot.runtime.listener import PortUnusable, listen, url_of
from foliot.runtime.service import SharedAnswer
from foliot.settings import Settings, variable
from foliot.store.arrears import read_arrears
from foliot.store.database import Database

log = logging.getLogger(__name__)

ANSWER_WITHIN_SECONDS: Final = 1.0


class WorkerReadiness:
    """The database answers, and callbacks are delivered, which is the workers' to do."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._found = SharedAnswer(self._look)

    async def checks(self) -> Mapping[str, Check]:
        try:
            return await self._found.get(within_seconds=ANSWER_WITHIN_SECONDS)
        except TimeoutError:
            return {"database": Check(ok=False, detail="it does not answer within a second")}

    async def _look(self) -> Mapping[str, Check]:
        try:
            late = await read_arrears(self._database)
        except FoliotError as error:
            return {"database": Check(ok=False, detail=str(error))}
        answers = Check(ok=True, detail="the database answers")
        return {"database": answers, "callbacks": late.checks()["callbacks"]}


@asynccontextmanager
async def serve_health(settings: Settings, readiness: Readiness) -> AsyncIterator[None]:
    """`/livez`, `/readyz` and `/metrics` while the block runs."""
    if settings.metrics_port is None:
        yield
        return
    try:
        listener = listen(settings.host, settings.metrics_port)
    except PortUnusable as refused:
        field, hint = variable("metrics_port"), "choose another, or 0 for a free one"
        raise InvalidInput(refused.reason, field=field, hint=hint) from None
    with closing(listener):
        async with health_port(listener, readiness):
            log.info("health and metrics on %s", url_of(listener))
            yield
