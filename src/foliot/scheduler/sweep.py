"""Anyone may fire what is overdue: a node that died, froze or fell behind keeps no job waiting.

Every node looks at the shards that are not its own for jobs that are overdue by more than a second,
and fires those that nobody else is at. What stays overdue for more than three seconds is taken even
from under somebody's lock.
"""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from foliot.core.ids import SHARDS, shard_of
from foliot.core.overdue import Watched, judge, moved, quiet
from foliot.runtime.chance import random_fraction
from foliot.runtime.metrics import OVERDUE_JOBS
from foliot.runtime.server_time import ServerTime
from foliot.scheduler.firing import Firing
from foliot.scheduler.lookback import Lookback
from foliot.scheduler.shards import Shards
from foliot.scheduler.staged import Staged
from foliot.store.errors import DatabaseError
from foliot.store.staging import DueJob, settle_due

PAUSE_SECONDS: Final = 0.25
OVERDUE: Final = timedelta(seconds=1)
TAKEN_AFTER: Final = timedelta(seconds=3)
LOOK_BACK: Final = timedelta(seconds=15)
PAGE: Final = 1000
# Of a few shards, in an order of our own: others that sweep are busy with other shards.
BATCH: Final = 250


@dataclass(frozen=True, slots=True)
class SweepReport:
    """How many jobs of others were overdue, up to a page of them, and how many instants were
    settled."""

    overdue: int
    settled: int


@dataclass(frozen=True, slots=True)
class Catch:
    """To be fired past what somebody has locked, and to be fired once the lock is free."""

    fire: list[DueJob] = field(default_factory=list)
    take: list[DueJob] = field(default_factory=list)


class Sweep:
    name: Final = "sweep"

    def __init__(
        self,
        lookback: Lookback,
        time: ServerTime,
        shards: Shards,
        staged: Staged,
        firing: Firing,
    ) -> None:
        self._lookback = lookback
        self._time = time
        self._shards = shards
        self._staged = staged
        self._firing = firing
        self._watched: dict[int, Watched] | None = None
        self.pause_seconds = PAUSE_SECONDS

    async def run_once(self, now: datetime | None = None) -> SweepReport:
        try:
            return await self._pass(now)
        except DatabaseError:
            self._watched = None
            raise

    async def _pass(self, now: datetime | None) -> SweepReport:
        moment = now or self._time.past()
        others = frozenset(range(SHARDS)) - self._shards.owned
        late = self._staged.count_due(moment - OVERDUE)
        if not others:
            OVERDUE_JOBS.set(late)
            return SweepReport(0, 0)
        low = self._lookback.low(moment)
        page = await self._firing.look(others, (low, moment - OVERDUE), PAGE, moment)
        self._lookback.done()
        overdue = len(page.jobs) + len(page.unreadable)
        OVERDUE_JOBS.set(late + overdue)
        catch = self._choose(page.jobs, moment)
        settled = await self._send(catch.fire, now, take=False)
        settled += await self._send(catch.take, now, take=True)
        self.pause_seconds = 0.0 if settled and page.is_full else PAUSE_SECONDS
        return SweepReport(overdue, settled)

    def _choose(self, jobs: Sequence[DueJob], now: datetime) -> Catch:
        """By shard, in an order of chance."""
        overdue: dict[int, list[DueJob]] = defaultdict(list)
        for due in jobs:
            if not self._firing.refusals.stands(due.job_id, now):
                overdue[shard_of(due.job_id)].append(due)
        heads = {shard: _key(dues[0]) for shard, dues in overdue.items()}
        before, catch = self._watched, Catch()
        at_work = {self._shards.owners.get(shard) for shard in moved(before or {}, heads)}
        self._watched = _quiet(before or {}, now)
        for shard in sorted(overdue, key=lambda _: random_fraction()):
            verdict = judge(
                heads[shard],
                None if before is None else before.get(shard, Watched()),
                now,
                owned=shard not in self._shards.without_owner,
                progress=self._shards.owners.get(shard) in at_work,
            )
            self._watched[shard] = verdict.watched
            late = [due for due in overdue[shard] if due.next_run_at < now - TAKEN_AFTER]
            rest = overdue[shard][len(late) if verdict.take else 0 :]
            catch.take.extend(late if verdict.take else [])
            catch.fire.extend(rest if verdict.fire else [])
        return catch

    async def _send(self, jobs: Sequence[DueJob], now: datetime | None, *, take: bool) -> int:
        done = 0
        while jobs:
            some = jobs[:BATCH]
            as_of = now or self._time.future()
            settled = self._firing.settle(
                [(due.job_id, partial(settle_due, due)) for due in some], now or self._time.past()
            )
            jobs = jobs[settled.jobs :]
            batch = await self._firing.send(settled.fires, as_of, take=take, now=now)
            done += sum(one.fired + one.skipped for one in batch.report.applied)
        return done


def _key(due: DueJob) -> Hashable:
    return due.job_id, due.expected, due.schedule_version


def _quiet(before: dict[int, Watched], now: datetime) -> dict[int, Watched]:
    """As if nothing were overdue."""
    kept = {shard: quiet(watched, now) for shard, watched in before.items()}
    return {shard: watched for shard, watched in kept.items() if watched is not None}
