"""Random operations from several connections, and after each one the tables are what a small model
in dictionaries says they are.

A walk follows from its seed alone, but for who wins a race; one that fails tells its seed and its
steps. `FOLIOT_TEST_EXAMPLES` asks for more than the usual few walks.
"""

import asyncio
import os
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from random import Random
from uuid import UUID

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from foliot.core.ids import ExecutionId, JobId, WorkerId
from foliot.core.model import (
    ConcurrencyLimit,
    Job,
    MisfirePolicy,
    OverlapPolicy,
    RetryPolicy,
    Schedule,
    ScheduleType,
    SkipReason,
)
from foliot.core.retry import DeadLetterReason
from foliot.core.states import EXECUTION, ExecutionEvent, ExecutionState, JobState
from foliot.store import jobs
from foliot.store.admitting import admit_held
from foliot.store.cancelling import Cancellation, cancel
from foliot.store.claiming import ClaimRequest, claim
from foliot.store.database import Database
from foliot.store.enqueuing import Request, Wanted, enqueue
from foliot.store.expiring import expire
from foliot.store.finishing import Outcome, finish
from foliot.store.firing import fire_batch
from foliot.store.job_rows import get
from foliot.store.releasing import release_due, release_overlaps
from foliot.store.rescuing import rescue_lost
from foliot.store.staging import settle_due, stage_due
from foliot.store.workers import beat, bury_silent
from foliot.testing.database import DatabaseFactory, sql
from foliot.testing.jobs import new_job
from foliot.testing.rows import DEFAULT_TENANT, NOW, make_worker
from foliot.testing.store_model import StoreModel
from foliot.testing.store_tables import empty_tables, read_tables

EXAMPLES = int(os.environ.get("FOLIOT_TEST_EXAMPLES") or 40)
STEPS = 100
CONNECTIONS = 3
TICK = timedelta(milliseconds=1)
LEASE = timedelta(seconds=15)
ENDS = sorted({event for state, event in EXECUTION if state is ExecutionState.RUNNING})
EVENTS = [event for event in ENDS if event not in (ExecutionEvent.LOSE, ExecutionEvent.SKIP)]
GIVEN_BACK = (ExecutionEvent.RETRY, ExecutionEvent.SNOOZE, ExecutionEvent.HAND_BACK)
FINAL_FAILURES = (ExecutionEvent.FAIL, ExecutionEvent.TIME_OUT)
# How often each operation comes up: most of a walk is work, little of it is people changing jobs.
OPERATIONS = {
    "time_passes": 6,
    "fire": 4,
    "enqueue": 5,
    "release": 9,
    "release_overlaps": 3,
    "admit": 5,
    "claim": 10,
    "finish": 12,
    "cancel": 1.5,
    "cancel_while_it_finishes": 1.5,
    "expire": 1,
    "beat": 5,
    "bury_and_rescue": 3,
    "create_job": 1,
    "change_job": 2,
    "delete_job": 0.5,
}

LANE = sql("select lane_id from foliot.jobs where id = $1")


class Walk:
    """One walk over an emptied database; ids are counted anew, so it can be walked again."""

    def __init__(self, databases: list[Database]) -> None:
        self.databases = databases
        self.model = StoreModel()
        self.now = NOW
        self.turn = 0
        self.numbers = count(1)
        self.status: dict[JobId, JobState] = {}
        self.lanes: set[int] = set()
        self.workers: list[WorkerId] = []
        self.last_beat: dict[WorkerId, datetime] = {}
        self.claims: list[tuple[WorkerId, ExecutionId, int]] = []
        self.known: list[ExecutionId] = []

    async def walk(self, seed: int) -> None:
        random = Random(seed)
        await empty_tables(self.databases[0])
        for _ in range(2):
            await self.new_worker()
            await self.create_job(random)
        steps = random.choices(list(OPERATIONS), list(OPERATIONS.values()), k=STEPS)
        for number, name in enumerate(steps):
            self.now += TICK  # no two operations happen at the same moment
            self.turn += 1
            try:
                await getattr(self, name)(random)
                await self.compare()
            except Exception as error:
                error.add_note(f"seed {seed}, at the end of {steps[: number + 1]}")
                raise

    @property
    def database(self) -> Database:
        """Another one at each step."""
        return self.databases[self.turn % CONNECTIONS]

    @property
    def rival(self) -> Database:
        return self.databases[(self.turn + 1) % CONNECTIONS]

    async def new_worker(self) -> None:
        worker = await make_worker(
            self.database,
            id=UUID(int=next(self.numbers)),
            registered_at=self.now,
            last_heartbeat_at=self.now,
        )
        self.workers.append(worker)
        self.last_beat[worker] = self.now
        self.model.started[worker] = set()

    async def time_passes(self, random: Random) -> None:
        self.now += timedelta(seconds=random.choice([1, 5, 7, 12, 31]))

    async def create_job(self, random: Random) -> None:
        if len(self.alive()) > 3:
            return
        schedule = Schedule(
            ScheduleType.INTERVAL,
            interval_seconds=random.choice([5, 10, 30]),
            overlap_policy=random.choice(list(OverlapPolicy)),
            misfire_policy=random.choice(list(MisfirePolicy)),
            misfire_max_runs=3,
        )
        job = new_job(
            schedule,
            job_id=JobId(UUID(int=next(self.numbers))),
            concurrency=ConcurrencyLimit(limit=random.choice([None, None, None, 1, 2])),
            start_deadline_seconds=random.choice([None, None, None, 20.0]),
            priority=random.randint(1, 10),
            retry_policy=RetryPolicy(
                max_attempts=random.randint(1, 3), max_crashes=random.randint(1, 2)
            ),
        )
        await jobs.create(self.database, job, changed_by="test", now=self.now)
        self.model.jobs[job.job_id] = job
        self.status[job.job_id] = JobState.ACTIVE
        self.lanes.add(await self.database.fetch_value(LANE, job.job_id))

    async def fire(self, _: Random) -> None:
        """Two schedulers have staged the same jobs: one of them fires each."""
        high = self.now + timedelta(microseconds=1)
        due = await stage_due(self.database, range(64), low=None, high=high, limit=100)
        batch = [fire for one in due if (fire := settle_due(one, self.now))]
        nodes = (self.database, self.rival)
        reports = await asyncio.gather(*(fire_batch(node, batch, now=self.now) for node in nodes))
        applied = Counter(one.job_id for report in reports for one in report.applied)
        assert applied == Counter(one.job_id for one in batch)
        for one in batch:
            self.model.fire(one, self.now)

    async def enqueue(self, random: Random) -> None:
        """Sent twice at once, done once."""
        if not self.alive():
            return
        job = self.model.jobs[random.choice(self.alive())]
        delay = random.choice([0.0, 0.0, 9.0])
        request = Request(DEFAULT_TENANT, "test", f"request-{next(self.numbers)}", self.now)
        wanted = [Wanted(job.job_id, delay_seconds=delay)]
        nodes = (self.database, self.rival)
        (one,), (two,) = await asyncio.gather(
            *(enqueue(node, request, wanted, self.now) for node in nodes)
        )
        assert one.execution_id == two.execution_id
        assert {one.replayed, two.replayed} == {False, True}
        self.model.enqueue(job, one.execution_id, self.now, delay)

    async def release(self, _: Random) -> None:
        nodes = (self.database, self.rival)
        await asyncio.gather(*(release_due(node, now=self.now) for node in nodes))
        self.model.release(self.now)

    async def release_overlaps(self, _: Random) -> None:
        await release_overlaps(self.database, now=self.now)
        self.model.release_overlaps(self.now)

    async def admit(self, _: Random) -> None:
        report = await admit_held(self.database, now=self.now)
        assert set(report.admitted) == self.model.admit()

    async def claim(self, random: Random) -> None:
        """Both workers at once: together they get what there is, and nothing twice."""
        free = self.model.claimable(self.now)
        requests = [
            ClaimRequest(worker, "default", sorted(self.lanes), random.randint(1, 4), rescan)
            for worker, rescan in zip(self.workers, random.choices([False, True], k=2), strict=True)
        ]
        found = await asyncio.gather(
            claim(self.database, requests[0], self.now), claim(self.rival, requests[1], self.now)
        )
        taken = [got.execution_id for claims in found for got in claims]
        wanted = sum(request.bite for request in requests)
        assert len(taken) == min(wanted, len(free)) == len(set(taken))
        assert set(taken) <= free
        for worker, claims in zip(self.workers, found, strict=True):
            for got in claims:
                self.model.claim(worker, got.execution_id)
                assert got.fence == self.model.live[got.execution_id].fence
                self.claims.append((worker, got.execution_id, got.fence))

    def some_claim(self, random: Random) -> tuple[WorkerId, ExecutionId, int]:
        """One that holds, or an old one of an execution that is held again, or any that was."""
        held = {row.execution_id: row.fence for row in self.model.live.values() if row.worker_id}
        holding = [one for one in self.claims if held.get(one[1]) == one[2]]
        outlived = [one for one in self.claims if held.get(one[1], 0) > one[2]]
        return random.choice(random.choice([holding, holding, holding, outlived]) or self.claims)

    async def finish(self, random: Random) -> None:
        """Told twice at once. What is superseded changes nothing."""
        if not self.claims:
            return
        worker, execution_id, fence = self.some_claim(random)
        event = random.choice([*EVENTS, *GIVEN_BACK])
        outcome = Outcome(
            execution_id,
            fence,
            event,
            delay_seconds=random.choice([0.0, 0.0, 3.0, 20.0]),
            started_at=random.choice([None, self.now]),
            dead_letter=DeadLetterReason.EXHAUSTED if event in FINAL_FAILURES else None,
        )
        nodes = (self.database, self.rival)
        reports = await asyncio.gather(
            *(finish(node, worker, [outcome], self.now) for node in nodes)
        )
        state = self.model.finish(worker, outcome, self.now)
        written = [report.written[execution_id] for report in reports if report.written]
        assert written == ([] if state is None else [state])

    async def cancel(self, random: Random) -> None:
        if not self.known:
            return
        execution_id = random.choice(self.known)
        answer = await cancel(self.database, DEFAULT_TENANT, [execution_id], "no", self.now)
        assert answer[execution_id] == self.model.cancel(execution_id)

    async def cancel_while_it_finishes(self, random: Random) -> None:
        """Whoever comes first: the two answers agree with one order of the two."""
        if not self.claims:
            return
        worker, execution_id, fence = self.some_claim(random)
        outcome = Outcome(execution_id, fence, ExecutionEvent.SUCCEED)
        answers, report = await asyncio.gather(
            cancel(self.database, DEFAULT_TENANT, [execution_id], "no", self.now),
            finish(self.rival, worker, [outcome], self.now),
        )
        finished_first = answers[execution_id] is Cancellation.NOT_LIVE
        written = report.written.get(execution_id)
        if finished_first:
            assert self.model.finish(worker, outcome, self.now) is written
        assert answers[execution_id] == self.model.cancel(execution_id)
        if not finished_first:
            assert self.model.finish(worker, outcome, self.now) is written

    async def expire(self, _: Random) -> None:
        assert set(await expire(self.database, now=self.now)) == self.model.expire(self.now)

    async def beat(self, random: Random) -> None:
        """A worker says which of what it holds it has begun."""
        worker = random.choice(self.workers)
        rows = self.model.live.values()
        held = sorted(row.execution_id for row in rows if row.worker_id == worker)
        begun = [one for one in held if random.random() < 0.7]
        answer = await beat(self.database, worker, begun, self.now)
        assert answer is not None
        assert [one.execution_id for one in answer.held] == held
        self.last_beat[worker], self.model.started[worker] = self.now, set(begun)

    async def bury_and_rescue(self, random: Random) -> None:
        """Whoever was silent for 15 s is dead; two schedulers judge what it held; another comes."""
        if random.random() < 0.5:
            self.now += timedelta(seconds=16)
        silent = {one for one in self.workers if self.now - self.last_beat[one] > LEASE}
        assert set(await bury_silent(self.database, now=self.now)) == silent
        nodes = (self.database, self.rival)
        await asyncio.gather(*(rescue_lost(node, now=self.now) for node in nodes))
        self.model.rescue(silent, self.now)
        for worker in sorted(silent):
            assert await beat(self.database, worker, [], self.now) is None
            self.workers.remove(worker)
            await self.new_worker()

    async def change_job(self, random: Random) -> None:
        if not self.alive():
            return
        job_id = random.choice(self.alive())
        if self.status[job_id] is JobState.PAUSED and random.random() < 0.5:
            self.status[job_id] = JobState.ACTIVE
            await self.settle(job_id, SkipReason.PAUSED)
            await jobs.resume(self.database, DEFAULT_TENANT, job_id, changed_by="t", now=self.now)
        elif random.random() < 0.4:
            await self.pause(job_id)
        else:
            await self.edit(self.model.jobs[job_id], random)

    async def pause(self, job_id: JobId) -> None:
        if self.status[job_id] is JobState.ACTIVE:
            await self.settle(job_id)
        await jobs.pause(self.database, DEFAULT_TENANT, job_id, changed_by="t", now=self.now)
        self.status[job_id] = JobState.PAUSED

    async def edit(self, job: Job, random: Random) -> None:
        """Another schedule, or another priority and limit."""
        seconds = random.choice([job.schedule.interval_seconds, 4, 9])
        edited = replace(
            job,
            schedule=replace(job.schedule, interval_seconds=seconds),
            priority=random.randint(1, 10),
            concurrency=ConcurrencyLimit(limit=random.choice([job.concurrency.limit, None, 1])),
        )
        if edited.schedule != job.schedule or self.status[job.job_id] is JobState.ACTIVE:
            await self.settle(job.job_id)
        await jobs.update(self.database, edited, changed_by="test", now=self.now)
        self.model.jobs[job.job_id] = edited

    async def delete_job(self, random: Random) -> None:
        if not self.alive():
            return
        job_id = random.choice(self.alive())
        await self.settle(job_id)
        await jobs.delete(self.database, DEFAULT_TENANT, job_id, changed_by="t", now=self.now)
        self.model.delete(job_id)
        self.status[job_id] = JobState.DELETED

    async def settle(self, job_id: JobId, cause: SkipReason = SkipReason.MISFIRE) -> None:
        """What a change does first with the instants up to now; of a paused job nothing runs."""
        stored = await get(self.database, DEFAULT_TENANT, job_id, self.now)
        if stored.due is None:
            return
        if self.status[job_id] is JobState.ACTIVE:
            if fire := settle_due(stored.due, self.now, cause):
                self.model.fire(fire, self.now)
            return
        schedule = replace(stored.due.schedule, misfire_grace_seconds=-1.0)
        late = replace(stored.due, schedule=schedule)
        if missed := settle_due(late, self.now, SkipReason.PAUSED):
            self.model.skip_all(missed)

    def alive(self) -> list[JobId]:
        return [one for one, status in self.status.items() if status is not JobState.DELETED]

    async def compare(self) -> None:
        found = await read_tables(self.database)
        assert found.live == {one.execution_id: one.columns for one in self.model.live.values()}
        assert Counter(found.history) == Counter(self.model.history)
        assert found.dead == self.model.dead
        assert found.skipped == self.model.skipped
        assert found.jobs == self.status
        assert found.settled_twice == []
        ended = [record[0] for record in found.history if record[-1]]
        assert len(ended) == len(set(ended))
        assert not found.live.keys() & set(ended)
        self.known = sorted({*found.live, *ended})


@pytest.mark.timeout(60 + 5 * EXAMPLES)
def test_whatever_happens_the_tables_are_as_the_model_says(server: DatabaseFactory) -> None:
    with asyncio.Runner() as runner:
        url = runner.run(server.create())
        databases = [Database(url) for _ in range(CONNECTIONS)]
        for database in databases:
            runner.run(database.open())

        # A simpler seed is no simpler walk.
        @settings(deadline=None, max_examples=EXAMPLES, database=None, phases=[Phase.generate])
        @given(seed=st.integers(0, 2**64 - 1))
        def walk(seed: int) -> None:
            runner.run(Walk(databases).walk(seed))

        walk()
        for database in databases:
            runner.run(database.close())
