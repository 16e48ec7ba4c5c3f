"""Calls that must stay fast in a crowd: what each may read at the most. Those of the dead letters;
the others stand in the test itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from foliot.core.ids import ExecutionId, JobId, replayed_execution
from foliot.core.model import Trigger
from foliot.store.enqueuing import Request, Wanted, columns_of, wanted_row
from foliot.testing.crowd import Batch, id_of
from foliot.testing.hot_arguments import DAY, Arguments, MakeArguments, constantly, executions
from foliot.testing.rows import DEFAULT_TENANT, NOW

BATCH: Final = 100


@dataclass(frozen=True, slots=True)
class Hot:
    """A call: how many rows it returns or changes, and the most entries and pages it may read.

    The limits are about twice what was measured; one look at the crowd would be a hundred times as
    much. What earlier calls of the same transaction took is still in the way, as under a pinned
    snapshot.
    """

    arguments: MakeArguments
    rows: int
    entries: int
    blocks: int
    tenant: bool = False  # behind row security, as that tenant
    repeated: bool = False  # it is the second time that counts


def of_a_letter(*rest: object) -> MakeArguments:
    async def one(batch: Batch) -> Arguments:
        return (DEFAULT_TENANT, executions(batch, "future")[0], *rest)

    return one


async def of_letters(batch: Batch) -> Arguments:
    return DEFAULT_TENANT, executions(batch, "future")


async def leave(batch: Batch) -> Arguments:
    return (executions(batch, "future"),)


async def replay(batch: Batch) -> Arguments:
    numbers = {id_of(f"execution-{number}"): number for number in batch.of("future")}
    letters = executions(batch, "future")
    rows = []
    for letter in letters:
        job = JobId(id_of(f"job-{numbers[letter]}"))
        own_id = replayed_execution(letter, NOW)
        wanted = Wanted(job, Trigger.REPLAY, retry_of=letter, execution_id=own_id)
        rows.append(wanted_row(Request(DEFAULT_TENANT, "replay", str(letter), NOW), 0, wanted))
    times = [NOW] * len(letters)
    return (DEFAULT_TENANT, letters, times, str(letters[0]), *columns_of(rows), NOW)


async def list_of_a_job(batch: Batch) -> Arguments:
    return _page(job_id=JobId(id_of(f"job-{batch.of('future')[0]}")))


async def read_ended(batch: Batch) -> Arguments:
    execution = ExecutionId(id_of(f"execution-{batch.of('queued last')[0]}"))
    return DEFAULT_TENANT, execution, NOW - 30 * DAY, NOW


def _page(
    kind: str = "OPEN",
    job_id: JobId | None = None,
    fingerprint: str | None = None,
    reason: str | None = None,
    *,
    oldest_first: bool = False,
) -> Arguments:
    wanted = (kind, job_id, fingerprint, reason, None, None, None)
    return (DEFAULT_TENANT, *wanted, oldest_first, None, None, BATCH, BATCH)


DEAD_LETTERS: Final[Mapping[str, Hot]] = {
    "dead_letters/discard": Hot(of_a_letter("no use", NOW), 1, 20, 100, tenant=True),
    "dead_letters/leave": Hot(leave, BATCH, 400, 3_000),
    "dead_letters/list_due": Hot(constantly(BATCH, NOW), BATCH, 1_500, 3_000),
    # What expired in another test lies dead before the newest.
    "dead_letters/list_page": Hot(constantly(*_page()), BATCH, 2_000, 3_000, tenant=True),
    "dead_letters/list_page from the oldest": Hot(
        constantly(*_page(oldest_first=True)), BATCH, 500, 1_500, tenant=True
    ),
    "dead_letters/list_page of a job": Hot(list_of_a_job, 1, 20, 100, tenant=True),
    "dead_letters/list_page of a group": Hot(
        constantly(*_page(fingerprint="f7")), BATCH, 500, 1_500, tenant=True
    ),
    "dead_letters/list_page of closed ones": Hot(
        constantly(*_page("REPLAYED")), BATCH, 500, 1_500, tenant=True
    ),
    # All that may be looked at is, and no more, besides those dead ones.
    "dead_letters/list_page of what there is none of": Hot(
        constantly(*_page(reason="POISON")), 1, 2_000, 3_000, tenant=True
    ),
    "dead_letters/read": Hot(of_a_letter(), 1, 20, 100, tenant=True),
    "dead_letters/read_replayable": Hot(of_letters, BATCH, 800, 4_000, tenant=True),
    "dead_letters/replay": Hot(replay, BATCH, 3_000, 16_000),
    "executions/read_ended": Hot(read_ended, 1, 20, 400),
}
