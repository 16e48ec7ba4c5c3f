"""Dead letters and other ended executions, run again on request: one, or all that fit at a rate.

Many are replayed a batch at a time, each batch at once and by itself, the oldest failure first.
"""

from dataclasses import dataclass, field
from typing import Final

from foliot.api.auth import Visit
from foliot.api.hinting import tell_of_replays
from foliot.api.patience import insist
from foliot.api.refusals import ExecutionNotFound, RunNotFinished
from foliot.api.requests import Asking
from foliot.api.schemas.dead_letters import ReplayAllBody
from foliot.core.errors import FoliotError
from foliot.core.ids import ExecutionId
from foliot.core.states import TERMINAL
from foliot.store.dead_letters import (
    DeadLetterFilter,
    LetterPlace,
    count_letters,
    list_letters,
)
from foliot.store.execution_rows import read_executions
from foliot.store.replaying import Asker, Replay, Replayed, ReplayReport, replay, retry_ended

BATCH: Final = 500
REFUSALS_SHOWN: Final = 100


@dataclass(slots=True)
class ReplayedAll:
    """`more`: the limit was reached before the letters were; `seconds`: until the last one."""

    replayed: int = 0
    refused: dict[ExecutionId, FoliotError] = field(default_factory=dict)
    more: bool = False
    seconds: float = 0.0


async def replay_one(visit: Visit, wanted: Replay, asker: Asker = Asker.REPLAY) -> Replayed:
    report = await _replay(visit, [wanted], asker)
    if wanted.letter_id in report.refused:
        raise report.refused[wanted.letter_id]
    return report.replayed[wanted.letter_id]


async def retry(asking: Asking, wanted: Replay) -> Replayed:
    """What has a dead letter is run again once, like a replay; all else whenever it is asked."""
    visit, execution_id = asking.visit, wanted.letter_id
    found = (await read_executions(visit.database, visit.tenant_id, [execution_id])).get(
        execution_id
    )
    if found is None:
        raise ExecutionNotFound(str(execution_id))
    if found.status not in TERMINAL:
        raise RunNotFinished(str(execution_id), found.status)
    if found.dead_letter_id is not None:
        return await replay_one(visit, wanted, Asker.RETRY)
    report = await insist(lambda: retry_ended(visit.database, visit.tenant_id, wanted, asking.mark))
    if report is None:
        raise ExecutionNotFound(str(execution_id))
    tell_of_replays(visit.hints, report)
    return report.replayed[execution_id]


async def count_replays(visit: Visit, wanted: DeadLetterFilter, limit: int) -> ReplayedAll:
    """What `replay_all` would do."""
    number = await count_letters(visit.database, visit.tenant_id, wanted)
    return ReplayedAll(min(number, limit), more=number > limit)


async def replay_all(visit: Visit, body: ReplayAllBody, trace_id: str | None) -> ReplayedAll:
    """If a batch fails, those before it stay replayed: to ask again goes on with the rest."""
    done, seen, wanted = ReplayedAll(), 0, body.filter.wanted()
    place: LetterPlace | None = None
    while seen < body.limit:
        size = min(BATCH, body.limit - seen)
        page = await list_letters(
            visit.database, visit.tenant_id, wanted, after=place, limit=size, oldest_first=True
        )
        first = done.replayed
        batch = [
            Replay(each.id, delay_seconds=_delay(body, first + number), trace_id=trace_id)
            for number, each in enumerate(page.letters)
        ]
        if batch:
            report = await _replay(visit, batch, Asker.REPLAY)
            done.replayed += len(report.replayed)
            done.refused |= report.refused
            done.seconds = _delay(body, max(0, done.replayed - 1))
        seen += len(batch)
        if len(page.letters) < size and page.ended is None:
            return done
        last = page.letters[-1] if page.letters else None
        place = page.ended or (LetterPlace(last.failed_at, last.id) if last else None)
    done.more = True
    return done


async def _replay(visit: Visit, batch: list[Replay], asker: Asker) -> ReplayReport:
    report = await insist(lambda: replay(visit.database, visit.tenant_id, batch, asker))
    tell_of_replays(visit.hints, report)
    return report


def _delay(body: ReplayAllBody, number: int) -> float:
    return body.delay_seconds + (number / body.rate if body.rate else 0.0)
