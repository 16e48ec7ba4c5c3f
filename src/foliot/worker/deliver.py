"""Tells receivers of ends: completion callbacks, taken from the database when they are due.

A callback is a request like that of an HTTP target, and goes the same way: through the same guard,
signed, bounded in time, a few at once to each host. Nothing of it is kept in memory: whoever dies
with one in its hands lets its lease run out, and another worker delivers it, under the same id.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Final

from foliot.core.delivery import PATIENCE_SECONDS, Decision, Delivered, GivenUp, decide
from foliot.core.model import ErrorType, Failure, Json
from foliot.core.storable import clean_text
from foliot.runtime.chance import random_fraction
from foliot.runtime.clock import Clock
from foliot.runtime.loop import Hint, repeat
from foliot.runtime.metrics import DELIVERIES
from foliot.runtime.service import until
from foliot.store.database import Database
from foliot.store.deliveries import ClaimedDelivery, claim_deliveries, end_claim, give_back
from foliot.store.errors import DatabaseError
from foliot.store.execution_rows import StoredExecution, read_executions
from foliot.worker.crowds import Crowds
from foliot.worker.messages import Messenger
from foliot.worker.tasks import Ended, Failed, HandedBack, HandedOver, Held, Succeeded

log = logging.getLogger(__name__)

AT_ONCE: Final = 64
PER_HOST: Final = 8
LOOK_SECONDS: Final = 1.0
# Places that become free together are filled together.
REST_SECONDS: Final = 0.02
# What became due longer ago than that is looked for less often: see `claim_deliveries`.
WINDOW_SECONDS: Final = 10.0
# One whose host has been down for so long is given up even if its own turn never came.
HELD_PATIENCE_SECONDS: Final = 2 * PATIENCE_SECONDS
LEAVE_SECONDS: Final = 5.0
ERROR_CHARS: Final = 1000


@dataclass(frozen=True, slots=True)
class _Tried:
    number: int
    decision: Decision
    seconds: float
    failure: Failure | None
    response: Json = None

    def entry(self) -> Mapping[str, Json]:
        """For the log: what was answered, and what was wrong with it."""
        told = self.response if isinstance(self.response, dict) else {}
        error = None
        if self.failure is not None:
            message = clean_text(self.failure.message, ERROR_CHARS)
            error = {"type": self.failure.type, "message": message, "detail": self.failure.detail}
        return {
            "attempt_number": self.number,
            "duration_ms": round(self.seconds * 1000),
            "http_status": told.get("http_status"),
            "body_preview": told.get("body_preview"),
            "error": error,
        }


class Deliverer:
    def __init__(
        self, database: Database, messenger: Messenger, clock: Clock, *, at_once: int = AT_ONCE
    ) -> None:
        self._database = database
        self._messenger = messenger
        self._clock = clock
        self._at_once = at_once
        self._under_way = 0
        self._more = False
        self._room = Hint()
        self._wide_at = clock.monotonic()
        self._crowds = Crowds(PER_HOST)

    async def serve(self, leave: asyncio.Event) -> None:
        """Until told to leave: then what is under way has a little time left."""
        async with asyncio.TaskGroup() as group:

            async def step() -> float:
                for claimed, stored in await self.take():
                    group.create_task(self.deliver(claimed, stored))
                return LOOK_SECONDS

            loop = repeat(
                "worker deliver",
                step,
                clock=self._clock,
                hint=self._room,
                rest_seconds=REST_SECONDS,
            )
            await until(leave, loop)
            await self.close(grace_seconds=LEAVE_SECONDS)
        self._database.cut()

    async def close(self, *, grace_seconds: float = 0.0) -> None:
        """What is still under way then is given back."""
        await self._messenger.close(grace_seconds=grace_seconds)

    async def take(
        self, now: datetime | None = None
    ) -> list[tuple[ClaimedDelivery, StoredExecution | None]]:
        """As many that are due as there are places, each with what it tells of; at a time that is
        told, however long they have been due."""
        free = self._at_once - self._under_way
        if free <= 0:
            return []
        wide = now is not None or self._clock.monotonic() >= self._wide_at
        window = None if wide else WINDOW_SECONDS
        claimed = await claim_deliveries(self._database, free, window_seconds=window, now=now)
        self._more = len(claimed) == free
        if wide and not self._more:
            self._wide_at = self._clock.monotonic() + WINDOW_SECONDS
        self._under_way += len(claimed)
        try:
            found = await self._read(claimed)
        except BaseException:
            self._under_way -= len(claimed)  # their leases run out
            raise
        return [(each, found.get((each.tenant_id, each.execution_id))) for each in claimed]

    async def deliver(
        self, claimed: ClaimedDelivery, stored: StoredExecution | None, now: datetime | None = None
    ) -> None:
        """Raises nothing: what goes wrong here is made good by the lease."""
        try:
            await self._deliver(claimed, stored, now)
        except DatabaseError as error:
            log.warning("a delivery could not be recorded and will be repeated: %s", error)
        except Exception:
            log.exception("a delivery failed and will be repeated")
        finally:
            self._under_way -= 1
            if self._more:
                self._room.give()

    async def _deliver(
        self, claimed: ClaimedDelivery, stored: StoredExecution | None, now: datetime | None
    ) -> None:
        place = _place_of(claimed)
        wait = self._crowds.enter(place, self._clock.monotonic())
        if wait is not None:
            await give_back(self._database, claimed, wait, now)
            self._more |= wait < LOOK_SECONDS  # it is due before the next look
            return
        began, seconds = self._clock.monotonic(), None
        try:
            ended = await self._messenger.send(claimed, stored)
            if not isinstance(ended, Held | HandedBack):
                seconds = self._clock.monotonic() - began
            tried = self._tried(claimed, ended, seconds or 0.0)
        finally:
            self._crowds.leave(place, seconds)
        await self._record(claimed, tried, now)

    async def _read(
        self, claimed: Sequence[ClaimedDelivery]
    ) -> dict[tuple[object, object], StoredExecution]:
        found: dict[tuple[object, object], StoredExecution] = {}
        for tenant_id in {each.tenant_id for each in claimed}:
            ids = [each.execution_id for each in claimed if each.tenant_id == tenant_id]
            read = await read_executions(self._database, tenant_id, ids)
            found |= {(tenant_id, each): stored for each, stored in read.items()}
        return found

    def _tried(self, claimed: ClaimedDelivery, ended: Ended, seconds: float) -> _Tried | float:
        """Or after how many seconds it is to be tried, because it was not."""
        number, age = claimed.attempt_number + 1, claimed.age_seconds
        match ended:
            case Held(wait, _) if age < HELD_PATIENCE_SECONDS:
                now = self._clock.monotonic()
                return max(wait, self._crowds.hold(_place_of(claimed), now))
            case Held(_, reason):
                failure = Failure(ErrorType.CONNECTION, reason)
                return _Tried(number, GivenUp(), seconds, failure)
            case Failed(failure, response):
                decision = decide(failure, number, age, chance=random_fraction())
                return _Tried(number, decision, seconds, failure, response)
            case Succeeded(_, _, response):
                return _Tried(number, Delivered(), seconds, None, response)
            case HandedOver():
                accepted = {"http_status": HTTPStatus.ACCEPTED}
                return _Tried(number, Delivered(), seconds, None, accepted)
            case _:
                return LOOK_SECONDS

    async def _record(
        self, claimed: ClaimedDelivery, tried: _Tried | float, now: datetime | None
    ) -> None:
        if isinstance(tried, float):
            await give_back(self._database, claimed, tried, now)
            return
        if await end_claim(self._database, claimed, tried.decision, tried.entry(), now):
            DELIVERIES.labels(type(tried.decision).__name__).inc()


def _place_of(claimed: ClaimedDelivery) -> tuple[object, str]:
    """Whose it is, and its address up to the path; where that is a secret, its name will do."""
    return claimed.tenant_id, "/".join((claimed.callback_url or "").split("/")[:3])
