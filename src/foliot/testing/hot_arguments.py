"""Arguments for the statements that must stay fast in a crowd, as the store's modules send them.

Each names the rows of one batch; another batch is other rows.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final, NoReturn, cast

from foliot.core.ids import ExecutionId, JobId, WorkerId, scheduled_execution
from foliot.core.limits import key_limit
from foliot.core.model import SkipReason
from foliot.core.schedule.timeline import Skip
from foliot.core.states import ExecutionEvent
from foliot.store.claiming import ClaimRequest, Look, claim
from foliot.store.database import Database
from foliot.store.enqueuing import Request, Wanted, backfill, enqueue
from foliot.store.finishing import Outcome, finish
from foliot.store.firing import Fire, JobFire, fire_in
from foliot.store.handing_over import HandOver, hand_over
from foliot.store.job_plans import columns, first_plan
from foliot.store.rescuing import WORKER_LOST, Verdict, apply
from foliot.store.session import Session
from foliot.store.statements import Statement
from foliot.store.workers import WorkerProfile, register
from foliot.testing.crowd import Batch, id_of, instant_of
from foliot.testing.jobs import new_job
from foliot.testing.rows import DEFAULT_TENANT, NOW, fresh_id

DAY: Final = timedelta(days=1)

Arguments = tuple[object, ...]
MakeArguments = Callable[[Batch], Awaitable[Arguments]]


class Sent(Exception):
    """What would have gone to the server."""

    def __init__(self, arguments: Arguments) -> None:
        super().__init__("nothing was sent")
        self.arguments = arguments


class Recorder(Database):
    """Stands where a database or a session is wanted, and sends nothing."""

    def __init__(self) -> None:
        super().__init__("postgresql://nobody@nowhere/nothing")

    async def fetch(self, _: Statement, *arguments: object) -> NoReturn:
        raise Sent(arguments)

    async def fetch_row(self, _: Statement, *arguments: object) -> NoReturn:
        raise Sent(arguments)

    async def execute(self, _: Statement, *arguments: object) -> NoReturn:
        raise Sent(arguments)


async def sent_by(call: Awaitable[object]) -> Arguments:
    try:
        await call
    except Sent as sent:
        return sent.arguments
    raise AssertionError("nothing would have been sent")


def constantly(*arguments: object) -> MakeArguments:
    async def same(_: Batch) -> Arguments:
        return arguments

    return same


def of_a_secret(*rest: object) -> MakeArguments:
    """Whose it is, its name, and what is the same for each."""

    async def one(batch: Batch) -> Arguments:
        return (DEFAULT_TENANT, f"S{batch.of('idle')[0]}", *rest)

    return one


async def read_sealed(batch: Batch) -> Arguments:
    return (DEFAULT_TENANT, [f"S{number}" for number in batch.of("idle")])


def of_a_signing_key(*rest: object) -> MakeArguments:
    """Each tenant of the crowd has one, and is named by a job's id."""

    async def one(batch: Batch) -> Arguments:
        return (id_of(f"job-{batch.of('idle')[0]}"), *rest)

    return one


def of_a_delivery(*rest: object) -> MakeArguments:
    """The execution that it tells of, whose number is odd: it is not delivered yet."""

    async def one(batch: Batch) -> Arguments:
        return (id_of(f"execution-{batch.of('idle')[0] | 1}"), *rest)

    return one


def of_a_job(kind: str, *rest: object) -> MakeArguments:
    """A job, and what is the same for each."""

    async def one(batch: Batch) -> Arguments:
        return (id_of(f"job-{batch.of(kind)[0]}"), *rest)

    return one


def jobs(batch: Batch, kind: str) -> list[tuple[JobId, int]]:
    """Ids and numbers, in the order of the ids."""
    return sorted((JobId(id_of(f"job-{number}")), number) for number in batch.of(kind))


def executions(batch: Batch, kind: str) -> list[ExecutionId]:
    return sorted(ExecutionId(id_of(f"execution-{number}")) for number in batch.of(kind))


def worker(name: str) -> WorkerId:
    return WorkerId(id_of(f"worker-{name}"))


def fire_of(kind: str, *, replaces: bool) -> MakeArguments:
    """One instant of each job fires, and another is skipped."""

    async def fire(batch: Batch) -> Arguments:
        fires = []
        for job_id, number in jobs(batch, kind):
            at = instant_of(number)
            fire = Fire(scheduled_execution(job_id, at), at, at)
            skip = Skip(at - DAY, at - DAY, 1, SkipReason.MISFIRE)
            seen = (job_id, DEFAULT_TENANT, "default", at, 1)
            following = (at, at + 9 * DAY, at + 9 * DAY)
            fires.append(JobFire(*seen, (fire,), (skip,), *following, replaces=replaces))
        session = cast(Session, Recorder())
        return await sent_by(fire_in(session, fires, take=replaces, now=NOW))

    return fire


def request(batch: Batch) -> Request:
    return Request(DEFAULT_TENANT, "test", f"new-{batch.number}", NOW)


async def enqueue_batch(batch: Batch) -> Arguments:
    return await enqueue_first(batch.size, batch)


async def enqueue_few(batch: Batch) -> Arguments:
    """So few that nothing is planned for them anew."""
    return await enqueue_first(10, batch)


async def enqueue_first(count: int, batch: Batch) -> Arguments:
    """Each with a key that is unique, and under a concurrency key of its own."""
    wanted = [
        Wanted(
            job_id,
            unique_key=str(number),
            concurrency=key_limit(DEFAULT_TENANT, str(number), 7) if number % 2 else None,
        )
        for job_id, number in jobs(batch, "idle")[:count]
    ]
    return await sent_by(enqueue(Recorder(), request(batch), wanted, NOW))


async def enqueue_the_past(batch: Batch) -> Arguments:
    number = batch.of("queued last")[0]
    instants = [instant_of(number - offset) for offset in range(1, batch.size + 1)]
    job_id = JobId(id_of(f"job-{number}"))
    return await sent_by(
        backfill(Recorder(), request(batch), job_id, instants, rerun=True, now=NOW)
    )


def claim_by(name: str, look: Look) -> MakeArguments:
    async def claim_batch(batch: Batch) -> Arguments:
        request = ClaimRequest(worker(name), "default", [1], batch.size, look)
        return await sent_by(claim(Recorder(), request, NOW))

    return claim_batch


claim_far: Final = claim_by("running", Look.FAR)
claim_anew: Final = claim_by("running", Look.EVERYWHERE)
claim_for_one: Final = claim_by("visitor", Look.FAR)


def explain(kind: str) -> MakeArguments:
    async def one(batch: Batch) -> Arguments:
        execution = id_of(f"execution-{batch.of(kind)[0]}")
        return (execution, DEFAULT_TENANT, NOW - 30 * DAY, 15.0, 10.0, 1001, NOW)

    return one


async def read_claimed(batch: Batch) -> Arguments:
    return worker("running"), executions(batch, "running"), [1] * batch.size


async def read_outcomes(batch: Batch) -> Arguments:
    return *await read_claimed(batch), NOW


async def write_progress(batch: Batch) -> Arguments:
    return *await read_claimed(batch), ["7"] * batch.size


async def append_lines(batch: Batch) -> Arguments:
    """A second line for each."""
    size = batch.size
    place = ([1] * size, [2] * size, [NOW] * size)
    words = (["INFO"] * size, ["test"] * size, ["a line"] * size)
    return *await read_claimed(batch), *place, *words, NOW


async def list_of_job(batch: Batch) -> Arguments:
    job = id_of(f"job-{batch.of('queued last')[0]}")
    return (DEFAULT_TENANT, job, *[None] * 16, batch.size, NOW)


async def read_many(batch: Batch) -> Arguments:
    (job_ids,) = await lock_jobs(batch)
    return job_ids, DEFAULT_TENANT, NOW


async def read_rows(batch: Batch) -> Arguments:
    ids = executions(batch, "queued last")
    return DEFAULT_TENANT, ids, [NOW - 30 * DAY] * len(ids), [None] * len(ids)


async def read_recent(batch: Batch) -> Arguments:
    return DEFAULT_TENANT, [job_id for job_id, _ in jobs(batch, "queued last")], 1


async def resolve_jobs(batch: Batch) -> Arguments:
    """Every other one by its name."""
    found = jobs(batch, "queued last")
    ids = [job_id if number % 2 else None for job_id, number in found]
    return DEFAULT_TENANT, ids, [f"job-{number}" for _, number in found], NOW


async def read_lines(batch: Batch) -> Arguments:
    execution_id = executions(batch, "queued last")[0]
    return execution_id, DEFAULT_TENANT, NOW - 30 * DAY, 0, 0, None, None, None, batch.size


async def finish_batch(batch: Batch) -> Arguments:
    events = [
        ExecutionEvent.SUCCEED,
        ExecutionEvent.RETRY,
        ExecutionEvent.SNOOZE,
        ExecutionEvent.HAND_BACK,
    ]
    outcomes = [
        Outcome(execution_id, 1, events[place % 4], delay_seconds=1.0)
        for place, execution_id in enumerate(executions(batch, "running"))
    ]
    return await sent_by(finish(Recorder(), worker("running"), outcomes, NOW))


async def hand_over_batch(batch: Batch) -> Arguments:
    words = [HandOver(execution_id, 1) for execution_id in executions(batch, "running")]
    return await sent_by(hand_over(Recorder(), worker("running"), words))


async def read_held(batch: Batch) -> Arguments:
    return executions(batch, "running")[0], DEFAULT_TENANT


async def rescue(batch: Batch) -> Arguments:
    verdicts = [
        Verdict(execution_id, 1, worker("lost"), ExecutionEvent.LOSE, WORKER_LOST, crash_count=1)
        for execution_id in executions(batch, "lost")
    ]
    return await sent_by(apply(Recorder(), verdicts, NOW))


async def cancel(batch: Batch) -> Arguments:
    return DEFAULT_TENANT, executions(batch, "queued last"), '{"type": "CANCELLED"}', NOW


async def create_job(_: Batch) -> Arguments:
    job = new_job()
    saved = columns(job, first_plan(job, None, NOW), 1)
    return (job.job_id, DEFAULT_TENANT, 1, True, *saved, "test", NOW)


async def update_job(batch: Batch) -> Arguments:
    job = new_job()
    saved = columns(job, first_plan(job, None, NOW), 1)
    return (id_of(f"job-{batch.of('queued last')[0]}"), NOW, True, True, *saved, "test")


async def reserve_name(batch: Batch) -> Arguments:
    """One that the job has already."""
    number = batch.of("queued last")[0]
    return DEFAULT_TENANT, f"job-{number}", id_of(f"job-{number}")


async def lock_jobs(batch: Batch) -> Arguments:
    return ([job_id for job_id, _ in jobs(batch, "queued last")],)


async def one_kept_job(batch: Batch) -> Arguments:
    return DEFAULT_TENANT, jobs(batch, "queued last")[0][0], None, batch.size


def outcomes_of(*more: object) -> MakeArguments:
    """A page of each job's, from the beginning on."""

    async def page(batch: Batch) -> Arguments:
        (job_ids,) = await lock_jobs(batch)
        return (job_ids, [NOW - 90 * DAY] * batch.size, *more)

    return page


async def replan_jobs(batch: Batch) -> Arguments:
    (job_ids,) = await lock_jobs(batch)
    instants = [NOW + DAY] * batch.size
    return job_ids, instants, instants, [True] * batch.size, "test", "test", NOW


async def register_worker(_: Batch) -> Arguments:
    profile = WorkerProfile("new", "test", "0", ["default"], 100)
    return await sent_by(register(Recorder(), WorkerId(fresh_id()), profile, NOW))


async def beat(_: Batch) -> Arguments:
    return worker("calm"), executions(Batch(0, 100), "calm"), NOW


async def list_cancelled(_: Batch) -> Arguments:
    return worker("calm"), executions(Batch(0, 100), "calm")


async def drain(batch: Batch) -> Arguments:
    return (worker(f"silent-{batch.number}"),)


async def deregister(batch: Batch) -> Arguments:
    return worker(f"silent-{batch.number}"), []


async def bury(batch: Batch) -> Arguments:
    """One more of those who are silent."""
    return 69.5 - batch.number, NOW


async def put_limits(batch: Batch) -> Arguments:
    """Half of them are lifted, half are changed."""
    keys = [f"key:{number}" for number in batch.of("future")]
    nothing: list[None] = [None] * batch.size
    return keys, [None, 7] * (batch.size // 2), nothing, nothing


async def note_changes(batch: Batch) -> Arguments:
    return [f"job:new-{number}" for number in batch.of("future")], NOW


async def apply_to_a_job(batch: Batch) -> Arguments:
    job_id = id_of(f"job-{batch.of('queued last')[0]}")
    return f"job:{job_id}", None, batch.size, NOW


async def apply_to_keys(batch: Batch) -> Arguments:
    """Of a job that has no limit any more."""
    job_id = id_of(f"job-{batch.of('limited')[0]}")
    return f"keys:{job_id}", None, batch.size, NOW


async def lock_parents(batch: Batch) -> Arguments:
    return (*await lock_jobs(batch), DEFAULT_TENANT)


async def put_parents(batch: Batch) -> Arguments:
    child = id_of(f"job-{batch.of('idle')[0]}")
    return (child, DEFAULT_TENANT, *await lock_jobs(batch), True)


async def follow(batch: Batch) -> Arguments:
    """Each has nothing under way."""
    children = [job_id for job_id, _ in jobs(batch, "idle")]
    fires = [scheduled_execution(job_id, NOW) for job_id in children]
    return children, fires, [NOW] * batch.size, [None] * batch.size, NOW


async def gather_one(batch: Batch) -> Arguments:
    return None, 0, id_of(f"job-{batch.of('future')[0]}"), [], NOW


async def read_ancestors(batch: Batch) -> Arguments:
    """Each has a parent of its own."""
    return ([job_id for job_id, _ in jobs(batch, "future")],)
