"""People and programs: they make jobs, change them, ask for executions and cancel them.

A client that gets no answer asks again with the same key. What it was told must stay true.
"""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from chaos.simulation.database import SimulatedDatabase
from chaos.simulation.engine import Node, Violation, World
from chaos.simulation.store import SimulatedStore
from foliot.core.errors import FoliotError
from foliot.core.ids import JobId, TenantId, shard_of
from foliot.core.model import (
    After,
    AfterOn,
    ConcurrencyLimit,
    HandlerTarget,
    Job,
    MisfirePolicy,
    OverlapPolicy,
    RetryPolicy,
    Schedule,
    ScheduleType,
)
from foliot.core.states import JobState
from foliot.store.enqueuing import Request, Wanted
from foliot.testing.model import jobs, requests, work

QUEUE: Final = "default"
TENANT: Final = TenantId(UUID(int=1))
CRONS: Final = ("*/2 * * * * *", "*/5 * * * * *", "1-59/7 * * * * *", "* * * * *")
INTERVALS: Final = (1.5, 2.0, 3.0, 7.0)
OVERLAPS: Final = (*OverlapPolicy, OverlapPolicy.ALLOW, OverlapPolicy.ALLOW)


class Client(Node):
    """All of them in one, which no fault hits but those of its messages."""

    def __init__(self, world: World, store: SimulatedStore) -> None:
        super().__init__(world, "client")
        self._store = store
        self._database = SimulatedDatabase(store, self._set_time)
        self._answers: dict[str, list[Any]] = {}
        self._requests = 0
        self.deadly: set[UUID] = set()

    def _set_time(self) -> None:
        self._store.now = self.world.moment

    def begin(self, number: int) -> None:
        """With so many jobs, and perhaps one more that follows the first."""
        chance = self.world.chance
        self._set_time()
        made = [self._new_job(self._schedule()) for _ in range(number)]
        if chance.random() < 0.4:
            after = After((made[0].job_id,), on=chance.choice([*AfterOn]))
            allow = OverlapPolicy.ALLOW
            made.append(
                self._new_job(Schedule(ScheduleType.AFTER, after=after, overlap_policy=allow))
            )
        if chance.random() < 0.15:
            self.deadly.add(made[-1].job_id)
        for job in made:
            self._store.create(job)

    def act(self) -> None:
        """One thing of many."""
        draw = self.world.chance.random()
        if draw < 0.45:
            work: Coroutine[Any, Any, Any] = self._enqueue()
        elif draw < 0.6:
            work = self._cancel()
        elif draw < 0.8:
            work = self._change(self._pause_or_resume)
        elif draw < 0.96:
            work = self._change(self._edit)
        else:
            work = self._change(self._delete)
        self.world.spawn(self, work)

    async def _enqueue(self) -> None:
        chance, store = self.world.chance, self._store
        alive = [one for one in store.jobs.values() if one.status is not JobState.DELETED]
        if not alive:
            return
        self._requests += 1
        key = f"request-{self._requests}"
        wanted = Wanted(
            chance.choice(alive).job.job_id,
            delay_seconds=chance.choice([None, None, 1.0, 4.0]),
            unique_key=chance.choice([None, None, "one"]),
        )
        request = Request(TENANT, "simulation", key, self.world.moment)

        def ask(store: SimulatedStore) -> list[Any]:
            return requests.ask(store, request, (wanted,), store.now)

        for _ in range(1 + chance.randrange(3)):
            try:
                answer = await self._database.change("enqueue", ask)
            except FoliotError:
                await self.sleep(chance.uniform(0.1, 3.0))
                continue
            self._remember(key, [one.execution_id for one in answer])
            if chance.random() < 0.8:
                return

    def _remember(self, key: str, ids: list[Any]) -> None:
        """However often it was asked, the answer is the same."""
        if self._answers.setdefault(key, ids) != ids:
            raise Violation(f"{key} was answered with {ids} and with {self._answers[key]}")

    async def _cancel(self) -> None:
        live = sorted(self._store.live)
        if not live:
            return
        chosen = self.world.chance.choice(live)

        def cancel(store: SimulatedStore) -> None:
            work.cancel(store, chosen, TENANT)
            store.cancel_asked_at.setdefault(chosen, store.now)

        await self._database.change("cancel", cancel)

    async def _change(self, change: Callable[[SimulatedStore, Job], None]) -> None:
        """Of a job with instants of its own."""
        known = [
            one
            for one in self._store.jobs.values()
            if one.status is not JobState.DELETED
            and one.job.schedule.type not in (ScheduleType.AFTER, ScheduleType.MANUAL)
        ]
        if known:
            job = self.world.chance.choice(known).job
            name = change.__name__.strip("_").replace("_", " ")
            await self._database.change(name, lambda store: change(store, job))

    def _pause_or_resume(self, store: SimulatedStore, job: Job) -> None:
        is_paused = store.jobs[job.job_id].status is JobState.PAUSED
        with store.whole_or_not_at_all():
            (jobs.resume if is_paused else jobs.pause)(store, TENANT, job.job_id, store.now)

    def _edit(self, store: SimulatedStore, job: Job) -> None:
        """Of one that is there now: another schedule, or the same with another policy."""
        record = jobs.record_of(store, TENANT, job.job_id)
        chance = self.world.chance
        schedule = record.job.schedule
        if chance.random() < 0.7:
            schedule = self._schedule()
        else:
            schedule = replace(schedule, overlap_policy=chance.choice(OVERLAPS))
        store.update(replace(record.job, schedule=schedule))

    def _delete(self, store: SimulatedStore, job: Job) -> None:
        with store.whole_or_not_at_all():
            jobs.delete(store, TENANT, job.job_id, store.now)

    def _schedule(self) -> Schedule:
        chance = self.world.chance
        kind = chance.random()
        policies: dict[str, Any] = {
            "overlap_policy": chance.choice(OVERLAPS),
            "misfire_policy": chance.choice([*MisfirePolicy]),
            "misfire_max_runs": 3,
            "jitter_seconds": chance.choice([0, 0, 1]),
        }
        if kind < 0.4:
            return Schedule(ScheduleType.CRON, cron_expression=chance.choice(CRONS), **policies)
        if kind < 0.85:
            seconds = chance.choice(INTERVALS)
            runs = chance.choice([None, None, None, 4])
            return Schedule(
                ScheduleType.INTERVAL, interval_seconds=seconds, max_runs=runs, **policies
            )
        at = self._store.now + timedelta(seconds=chance.uniform(0.5, 25.0))
        return Schedule(ScheduleType.ONE_TIME, run_at=at, **policies)

    def _new_job(self, schedule: Schedule) -> Job:
        """In one of the few shards that there are."""
        chance, store = self.world.chance, self._store
        job_id = JobId(UUID(int=chance.getrandbits(128)))
        while shard_of(job_id) not in store.leases:
            job_id = JobId(UUID(int=chance.getrandbits(128)))
        limit = chance.choice([None, None, 1, 2])
        return Job(
            job_id,
            TENANT,
            f"job-{job_id}",
            schedule,
            HandlerTarget("work"),
            queue=QUEUE,
            retry_policy=RetryPolicy(
                max_attempts=1 + chance.randrange(3),
                max_crashes=1 + chance.randrange(2),
                max_delay_seconds=5,
            ),
            timeout_seconds=6.0,
            cancel_grace_seconds=2.0,
            start_deadline_seconds=chance.choice([None, None, None, 12.0]),
            concurrency=ConcurrencyLimit(limit=limit),
        )
