"""`/v1/dead-letters`: what ended without success: listed, grouped, read, replayed, discarded."""

from http import HTTPStatus
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from foliot.api.answers import Answer, page_of
from foliot.api.auth import Visit, Visiting
from foliot.api.idempotency import once
from foliot.api.lists import pair_in, time_in, uuid_in
from foliot.api.pagination import Pages
from foliot.api.patience import insist
from foliot.api.refusals import InvalidCursor
from foliot.api.replays import (
    REFUSALS_SHOWN,
    ReplayedAll,
    count_replays,
    replay_all,
    replay_one,
)
from foliot.api.requests import trace_of
from foliot.api.routes.executions import answer_replay
from foliot.api.schemas.dead_letters import (
    DeadLetterQuery,
    DiscardQuery,
    GroupQuery,
    ReplayAllBody,
    ReplayBody,
)
from foliot.api.schemas.shape import is_storable_text
from foliot.core.errors import DeadLetterNotFound
from foliot.core.ids import ExecutionId
from foliot.core.model import Json
from foliot.store import dead_letters as store
from foliot.store.dead_letters import LetterGroup, LetterPlace, LetterSample, StoredDeadLetter
from foliot.store.execution_rows import read_executions
from foliot.store.execution_views import View, error_view
from foliot.store.job_references import as_uuid
from foliot.store.replaying import Replay

PREFIX: Final = "/v1/dead-letters"

routes = APIRouter(prefix=PREFIX, tags=["dead letters"])


def meant_letter(letter_id: str) -> ExecutionId:
    found = as_uuid(letter_id)
    if found is None:
        raise DeadLetterNotFound(letter_id)
    return ExecutionId(found)


MeantLetter = Annotated[ExecutionId, Depends(meant_letter)]


@routes.get("")
async def list_letters(visit: Visiting, query: Annotated[DeadLetterQuery, Query()]) -> Response:
    """Those that await a decision, unless `status` says otherwise; the newest failure first."""
    pages = Pages(f"{visit.tenant_id} dead letters {query.filters()}")
    after, wanted = None, query.wanted()
    if query.cursor:
        failed_at, letter_id = pair_in(pages.place(query.cursor))
        after = LetterPlace(time_in(failed_at), ExecutionId(uuid_in(letter_id)))
    page = await store.list_letters(
        visit.database, visit.tenant_id, wanted, after=after, limit=query.limit + 1
    )
    shown, place = page.letters[: query.limit], page.ended
    if len(page.letters) > query.limit:
        place = LetterPlace(shown[-1].failed_at, shown[-1].id)
    cursor = pages.cursor([place.failed_at.isoformat(), str(place.id)]) if place else None
    total = None
    if query.count:
        total = await store.count_letters(visit.database, visit.tenant_id, wanted)
    return page_of([_view(each, [_last(each)]) for each in shown], cursor, total).response()


@routes.get("/groups")
async def list_groups(visit: Visiting, query: Annotated[GroupQuery, Query()]) -> Response:
    """By what they died of, the group with the newest failure first."""
    pages = Pages(f"{visit.tenant_id} dead letter groups {query.filters()}")
    after = None
    if query.cursor:
        failed_at, fingerprint = pair_in(pages.place(query.cursor))
        if not isinstance(fingerprint, str) or not is_storable_text(fingerprint):
            raise InvalidCursor("is not a cursor")
        after = (time_in(failed_at), fingerprint)
    tenant, job = visit.tenant_id, query.job()
    found = await store.list_groups(visit.database, tenant, job, after=after, limit=query.limit + 1)
    shown = found[: query.limit]
    cursor = None
    if len(found) > query.limit:
        cursor = pages.cursor([shown[-1].last_failed_at.isoformat(), shown[-1].fingerprint])
    total = await store.count_groups(visit.database, tenant, job) if query.count else None
    return page_of([_group_view(each) for each in shown], cursor, total).response()


@routes.post("/replay", status_code=HTTPStatus.ACCEPTED)
async def replay_letters(request: Request, visit: Visiting, body: ReplayAllBody) -> Response:
    """All that fit, the oldest failure first, spread by the rate."""

    async def work(_: UUID, __: str) -> Answer:
        if body.dry_run:
            done = await count_replays(visit, body.filter.wanted(), body.limit)
            return Answer(_replays_view(done))
        done = await replay_all(visit, body, trace_of(request))
        return Answer(_replays_view(done), HTTPStatus.ACCEPTED)

    return await once(request, visit, work)


@routes.get("/{letter_id}")
async def read_letter(visit: Visiting, letter: MeantLetter) -> Response:
    """With the errors of all attempts, as long as history has them."""
    found = await store.read_letter(visit.database, visit.tenant_id, letter)
    return Answer(_view(found, await _errors(visit, found))).response()


@routes.post("/{letter_id}/replay", status_code=HTTPStatus.ACCEPTED)
async def replay_letter(
    request: Request, visit: Visiting, letter: MeantLetter, body: ReplayBody | None = None
) -> Response:
    """202 with the new execution, or 200 with the one that an earlier replay made."""
    payload = (body or ReplayBody()).payload_override
    wanted = Replay(letter, payload, trace_id=trace_of(request))

    async def work(_: UUID, __: str) -> Answer:
        return await answer_replay(visit, await replay_one(visit, wanted))

    return await once(request, visit, work)


@routes.delete("/{letter_id}")
async def discard_letter(
    visit: Visiting, letter: MeantLetter, query: Annotated[DiscardQuery, Query()]
) -> Response:
    """It stays to be read, with the reason."""
    found = await insist(
        lambda: store.discard(visit.database, visit.tenant_id, letter, query.reason)
    )
    return Answer(_view(found, await _errors(visit, found))).response()


async def _errors(visit: Visit, letter: StoredDeadLetter) -> list[View]:
    found = await read_executions(visit.database, visit.tenant_id, [letter.id])
    if letter.id not in found:
        return [_last(letter)]
    errors = [
        _error(each.error, each.attempt_number, each.finished_at)
        for each in found[letter.id].attempts
        if each.error is not None
    ]
    # What nobody ever started has made no attempt, and an error.
    return errors or [_last(letter)]


def _last(letter: StoredDeadLetter) -> View:
    return _error(letter.error, letter.total_attempts, letter.failed_at)


def _error(error: Json, attempt_number: int, finished_at: object) -> View:
    written: Any = error_view(error if isinstance(error, dict) else {})
    return {"attempt_number": attempt_number, "finished_at": finished_at, **written}


def _view(letter: StoredDeadLetter, errors: list[View]) -> View:
    return {
        "id": letter.id,
        "execution_id": letter.id,
        "job_id": letter.job_id,
        "job_name": letter.job_name,
        "job_version": letter.job_version,
        "status": letter.kind,
        "reason": letter.reason,
        "fingerprint": letter.fingerprint,
        "scheduled_time": letter.scheduled_time,
        "failed_at": letter.failed_at,
        "payload": letter.payload,
        "payload_omitted": letter.payload_omitted,
        "total_attempts": letter.total_attempts,
        "errors": errors,
        "replay_at": letter.replay_at if letter.kind is store.DeadLetterKind.OPEN else None,
        "replayed_as": letter.replayed_as,
        "replayed_at": letter.replayed_at,
        "discarded_at": letter.discarded_at,
        "discard_reason": letter.discard_reason,
    }


def _group_view(group: LetterGroup) -> View:
    sample = {name: getattr(group.sample, name) for name in LetterSample.__slots__}
    return {
        "fingerprint": group.fingerprint,
        "count": group.number,
        "first_failed_at": group.first_failed_at,
        "last_failed_at": group.last_failed_at,
        "sample": sample | {"error": error_view(group.sample.error)},
    }


def _replays_view(done: ReplayedAll) -> View:
    refused = [
        {"id": letter_id, "code": refusal.code, "message": str(refusal)}
        for letter_id, refusal in list(done.refused.items())[:REFUSALS_SHOWN]
    ]
    return {
        "replayed": done.replayed,
        "refused": len(done.refused),
        "refusals": refused,
        "more": done.more,
        "last_delay_seconds": done.seconds,
    }
