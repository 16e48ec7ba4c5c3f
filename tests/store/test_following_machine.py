"""Whatever ends, pauses and edits come in whatever order, each child has fired for just those ends
that a list kept by hand says."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.core.ids import ExecutionId, JobId, after_execution
from foliot.core.model import After, AfterMode, AfterOn, Job
from foliot.core.schedule.after import Completion, Fire, decide
from foliot.core.states import ExecutionEvent, ExecutionState
from foliot.store.completions import follow
from foliot.store.database import Database
from foliot.store.jobs import pause, resume, update
from foliot.testing.database import DatabaseFactory
from foliot.testing.following import end_one, live_of, make_child, make_parent
from foliot.testing.rows import DEFAULT_TENANT, NOW, JobRow

PARENTS: Final = 3
CHILDREN: Final = 3
SECOND: Final = timedelta(seconds=1)

Wanted = tuple[set[int], AfterMode, AfterOn]


@dataclass(frozen=True)
class End:
    parent: int
    well: bool


@dataclass(frozen=True)
class Pass:
    rows: int


@dataclass(frozen=True)
class Pause:
    child: int


@dataclass(frozen=True)
class Resume:
    child: int


@dataclass(frozen=True)
class Edit:
    child: int
    wanted: Wanted


Step = End | Pass | Pause | Resume | Edit

parents, children = st.integers(0, PARENTS - 1), st.integers(0, CHILDREN - 1)
follows = st.tuples(
    st.sets(parents, min_size=1), st.sampled_from(AfterMode), st.sampled_from(AfterOn)
)
steps: st.SearchStrategy[Step] = st.one_of(
    st.builds(End, parents, st.booleans()),
    st.builds(End, parents, st.just(True)),
    st.builds(Pass, st.integers(1, 4)),
    st.builds(Pause, children),
    st.builds(Resume, children),
    st.builds(Edit, children, follows),
)


@dataclass
class Expected:
    """A child, by hand: what it was told since it last fired, and its fires."""

    job: Job
    after: After
    paused: bool = False
    inbox: list[Completion] = field(default_factory=list)
    told: dict[JobId, Completion] = field(default_factory=dict)
    fires: list[ExecutionId] = field(default_factory=list)

    def hear(self, end: Completion) -> None:
        counts = self.after.on is AfterOn.FINISHED or end.status is ExecutionState.SUCCEEDED
        if end.job_id in self.after.jobs and counts:
            self.inbox.append(end)

    def settle(self, *, runs: bool) -> None:
        self.told |= {end.job_id: end for end in self.inbox}
        self.inbox.clear()
        decision = decide(self.after, self.told.values())
        if runs and isinstance(decision, Fire):
            parents, at = decision.parents, decision.completed_at
            self.fires.append(after_execution(self.job.job_id, parents, at))
            self.told.clear()

    def edit(self, after: After) -> None:
        if self.paused and isinstance(decide(self.after, self.told.values()), Fire):
            self.told.clear()
        self.after = after
        self.told = {job: end for job, end in self.told.items() if job in after.jobs}
        if not self.paused:
            self.settle(runs=True)


class Play:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._now = NOW
        self._parents: list[JobRow] = []
        self._children: list[Expected] = []

    async def begin(self, wanted: list[Wanted]) -> None:
        self._parents = [await make_parent(self._database) for _ in range(PARENTS)]
        for each in wanted:
            after = self._after(each)
            self._children.append(Expected(await make_child(self._database, after), after))

    def _after(self, wanted: Wanted) -> After:
        numbers, mode, on = wanted
        return After(tuple(self._parents[number].job_id for number in sorted(numbers)), mode, on)

    async def take(self, step: Step) -> None:
        self._now += SECOND
        match step:
            case End(parent, well):
                await self._end(self._parents[parent], well=well)
            case Pass(rows):
                await self._follow(rows)
            case Pause(child):
                await self._pause(self._children[child])
            case Resume(child):
                await self._resume(self._children[child])
            case Edit(child, wanted):
                await self._edit(self._children[child], self._after(wanted))

    async def _end(self, parent: JobRow, *, well: bool) -> None:
        event = ExecutionEvent.SUCCEED if well else ExecutionEvent.FAIL
        status = ExecutionState.SUCCEEDED if well else ExecutionState.FAILED
        execution_id = await end_one(self._database, parent, event, self._now)
        for child in self._children:
            child.hear(Completion(parent.job_id, execution_id, status, self._now))

    async def _follow(self, rows: int) -> None:
        while (await follow(self._database, rows=rows, now=self._now)).full:
            pass
        for child in self._children:
            if child.inbox:
                child.settle(runs=not child.paused)

    async def _pause(self, child: Expected) -> None:
        await self._change(pause, child)
        if not child.paused:
            child.settle(runs=True)
        child.paused = True

    async def _resume(self, child: Expected) -> None:
        await self._change(resume, child)
        if child.paused:
            child.settle(runs=True)
        child.paused = False

    async def _change(self, change: Callable[..., Awaitable[object]], child: Expected) -> None:
        job_id = child.job.job_id
        await change(self._database, DEFAULT_TENANT, job_id, changed_by="bob", now=self._now)

    async def _edit(self, child: Expected, after: After) -> None:
        schedule = replace(child.job.schedule, after=after)
        edited = replace(child.job, schedule=schedule)
        await update(self._database, edited, changed_by="bob", now=self._now)
        if after != child.after or not child.paused:
            child.settle(runs=not child.paused)
        if after != child.after:
            child.edit(after)

    async def compare(self) -> None:
        await self._follow(2)
        for child in self._children:
            live = await live_of(self._database, child.job.job_id)
            assert [row["id"] for row in live] == child.fires


@pytest.fixture(scope="module")
def playground(server: DatabaseFactory) -> Iterator[tuple[asyncio.Runner, Database]]:
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        database = Database(runner.run(server.create()))
        runner.run(database.open())
        yield runner, database
        runner.run(database.close())


@settings(max_examples=60, deadline=None)
@given(
    wanted=st.lists(follows, min_size=CHILDREN, max_size=CHILDREN),
    script=st.lists(steps, max_size=25),
)
def test_every_child_fires_for_just_the_ends_it_followed(
    playground: tuple[asyncio.Runner, Database],
    wanted: list[Wanted],
    script: list[Step],
) -> None:
    runner, database = playground

    async def play() -> None:
        game = Play(database)
        await game.begin(wanted)
        for step in script:
            await game.take(step)
        await game.compare()

    runner.run(play())
