"""A worker's next executions: claimed queue by queue, in bites that it can begin soon.

Each pass begins with another queue, so that a full one never keeps the others waiting. After a
hint the queues that it named are asked first, and the others if they have not been for a second.
Which lanes are asked for is read anew every few seconds, sooner while there is nothing to do, and
at once when a hint led to nothing: the first job of a new lane is served soon. A claim whose answer
is lost is found by the heartbeats.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from foliot.core.ids import WorkerId
from foliot.runtime.clock import Clock
from foliot.runtime.loop import Hint
from foliot.runtime.metrics import EXECUTIONS_CLAIMED
from foliot.store.claiming import Claim, ClaimRequest, Look, claim, read_claimed
from foliot.store.database import Database
from foliot.store.errors import DatabaseError
from foliot.store.lanes import list_servable
from foliot.store.workers import WorkerProfile, count_sharing
from foliot.worker.appetite import bite, room_at
from foliot.worker.attempts import Attempts
from foliot.worker.finish import given_back
from foliot.worker.waking import DEAF, IDLE_SECONDS_MAX, IDLE_SECONDS_MIN, Ear, Waking

LANES_SECONDS: Final = 3.0
LANES_SECONDS_IDLE: Final = 0.5
LANES_SECONDS_HINTED: Final = 0.1
# However many hints name one queue, the others are asked as often as this.
ROUND_SECONDS: Final = 1.0
COUNT_SECONDS: Final = 10.0
FAR_SECONDS: Final = 1.0
EVERYWHERE_SECONDS: Final = 10.0
PAUSE_PER_SECOND: Final = 20.0
FULL_SECONDS: Final = 0.25


@dataclass(frozen=True, slots=True)
class ClaimReport:
    """`full`: there was no room for more when the pass ended."""

    claimed: int
    full: bool

    def and_then(self, later: "ClaimReport") -> "ClaimReport":
        return ClaimReport(self.claimed + later.claimed, later.full)


def pause_seconds(report: ClaimReport, previous: float, longest: float) -> float:
    """Before the next pass: none while there is work, then longer and longer up to a quarter of a
    second; then as long as may be."""
    if report.full:
        return FULL_SECONDS
    if report.claimed:
        return 0.0
    pause = max(previous * 1.5, IDLE_SECONDS_MIN)
    return pause if pause < IDLE_SECONDS_MAX else longest


class Glances:
    """How far below its mark a queue is looked at: near most of the time, farther each second,
    everywhere each tenth second.

    While a snapshot is pinned, a look everywhere walks over all that was claimed since (a second
    for two million), so it is taken less often, for a twentieth of the time at the most; and one
    that failed counts as one that was taken.
    """

    def __init__(self) -> None:
        self._far_at: dict[str, float] = {}
        self._everywhere_at: dict[str, float] = {}

    def choose(self, queue: str, now: float) -> Look:
        if now >= self._everywhere_at.get(queue, now):
            return Look.EVERYWHERE
        return Look.FAR if now >= self._far_at.get(queue, now) else Look.NEAR

    def done(self, queue: str, look: Look, asked_at: float, now: float) -> None:
        pause = (now - asked_at) * PAUSE_PER_SECOND
        if look is Look.EVERYWHERE:
            self._everywhere_at[queue] = asked_at + max(EVERYWHERE_SECONDS, pause)
        if look is not Look.NEAR:
            self._far_at[queue] = asked_at + max(FAR_SECONDS, min(pause, EVERYWHERE_SECONDS))


class Claimer:
    """Claims for one worker, into the hand of its attempts."""

    def __init__(
        self,
        database: Database,
        worker_id: WorkerId,
        profile: WorkerProfile,
        attempts: Attempts,
        clock: Clock,
        ear: Ear = DEAF,
    ) -> None:
        self.waking = Waking(profile.queues)
        self._ear = ear
        self._database = database
        self._worker_id = worker_id
        self._profile = profile
        self._attempts = attempts
        self._clock = clock
        self._lanes: Mapping[str, Sequence[int]] = {}
        self._lanes_at = float("-inf")
        self._lanes_in_doubt = False
        self._round_at = float("-inf")
        self._counted_at = float("-inf")
        self._glances = Glances()
        self._order: deque[str] = deque()
        self._pause = 0.0
        self._last = ClaimReport(0, False)
        self._room_at = 0

    @property
    def hint(self) -> Hint:
        return self.waking.hint

    def hear_of_room(self) -> None:
        """An attempt has ended: if there was no room before and there is now, do not wait."""
        if not self._last.full or self._attempts.hand.waiting > self._room_at:
            return
        if bite(self._attempts.load()):
            self._last = ClaimReport(self._last.claimed, full=False)
            self.hint.give()

    async def step(self) -> float:
        """One pass of the loop, and the seconds to wait before the next."""
        self._last = await self.run_once()
        if self._last.full:
            self._room_at = room_at(self._attempts.load())
        self._pause = pause_seconds(self._last, self._pause, self._ear.longest_seconds)
        if self._lanes_in_doubt:
            self._pause = min(self._pause, LANES_SECONDS_HINTED)
        return self._pause

    async def run_once(self, now: datetime | None = None) -> ClaimReport:
        if self._attempts.is_leaving or not bite(self._attempts.load()):
            return ClaimReport(0, full=True)
        began, told = self._clock.monotonic(), self.waking.take()
        self._lanes_in_doubt = self._lanes_in_doubt or told is not None
        is_round = told is None or began - self._round_at >= ROUND_SECONDS
        report = ClaimReport(0, full=False)
        # While there is work, whoever has waited for a round does not wait for a hint as well.
        if told is not None and not (is_round and self._last.claimed):
            report = await self._ask(told, now)
        if is_round and not report.full:
            self._round_at = began
            await self._count_workers()
            await self._read_lanes(LANES_SECONDS if self._last.claimed else LANES_SECONDS_IDLE)
            self._order.rotate(-1)
            report = report.and_then(await self._ask(None, now))
        for_nothing = self._lanes_in_doubt and not report.claimed and not report.full
        if for_nothing and await self._read_lanes(LANES_SECONDS_HINTED):
            report = await self._ask(told, now)
        return report

    async def _ask(self, told: frozenset[str] | None, now: datetime | None) -> ClaimReport:
        """Every queue in turn, or those that were told of."""
        claimed = 0
        for queue in tuple(self._order):
            if told is not None and queue not in told:
                continue
            wanted = bite(self._attempts.load())
            if not wanted:
                return ClaimReport(claimed, full=True)
            claimed += await self._claim(queue, wanted, now)
        return ClaimReport(claimed, full=False)

    async def _read_lanes(self, kept_seconds: float) -> bool:
        """If they are older than that; whether they have become others."""
        now = self._clock.monotonic()
        if now - self._lanes_at < kept_seconds:
            return False
        before, self._lanes = self._lanes, await list_servable(self._database, self._profile)
        self._lanes_at, self._lanes_in_doubt = now, False
        if set(self._order) != set(self._lanes):
            self._order = deque(self._lanes)
        return self._lanes != before

    async def _count_workers(self) -> None:
        """How many hear the same hints: nobody needs to know it exactly."""
        now = self._clock.monotonic()
        if self._ear.transport.flows and now - self._counted_at >= COUNT_SECONDS:
            self.waking.workers = await count_sharing(self._database, self._profile.queues)
            self._counted_at = now

    async def _claim(self, queue: str, wanted: int, now: datetime | None) -> int:
        asked_at = self._clock.monotonic()
        look = self._glances.choose(queue, asked_at)
        request = ClaimRequest(self._worker_id, queue, self._lanes[queue], wanted, look)
        try:
            claims = await claim(self._database, request, now)
        finally:
            self._glances.done(queue, look, asked_at, self._clock.monotonic())
        if claims:
            EXECUTIONS_CLAIMED.labels(queue).inc(len(claims))
            await self._take(claims)
        return len(claims)

    async def _take(self, claims: Sequence[Claim]) -> None:
        """What cannot be read now goes back: it would only wait here."""
        taken_at = self._clock.monotonic()
        self._attempts.expect((each.execution_id, each.fence) for each in claims)
        try:
            batch = await read_claimed(self._database, self._worker_id, claims)
        except DatabaseError:
            for each in claims:
                self._attempts.finisher.put(given_back(each.execution_id, each.fence))
            raise
        finally:
            self._attempts.expect(())
        self._attempts.accept(batch, taken_at)
