"""Dead letters as they are kept, listed, grouped, discarded; each tenant has its own."""

from datetime import timedelta

import pytest

from foliot.core.errors import DeadLetterClosed, DeadLetterNotFound
from foliot.core.ids import ExecutionId
from foliot.core.model import ErrorType, Failure
from foliot.core.retry import DeadLetterReason as Reason
from foliot.store import dead_letters
from foliot.store.database import Database
from foliot.store.dead_letters import (
    DeadLetterFilter,
    DeadLetterKind,
    LetterPlace,
    count_groups,
    count_letters,
    discard,
    list_groups,
    list_letters,
    read_depth,
    read_letter,
)
from foliot.store.expiring import expire
from foliot.store.replaying import Replay, replay
from foliot.testing.database import sql
from foliot.testing.letters import make_letters
from foliot.testing.rows import DEFAULT_TENANT, NOW, make_execution, make_job, make_tenant

SECOND = timedelta(seconds=1)
TIMEOUT = Failure(ErrorType.TIMEOUT, "no answer after 30 s")


async def listed(database: Database, limit: int = 100, **wanted: object) -> list[ExecutionId]:
    found = DeadLetterFilter(**wanted)  # type: ignore[arg-type]
    page = await list_letters(database, DEFAULT_TENANT, found, limit=limit)
    assert page.ended is None
    assert await count_letters(database, DEFAULT_TENANT, found) == len(page.letters)
    return [letter.id for letter in page.letters]


async def test_a_letter_has_what_it_takes_to_replay(database: Database) -> None:
    job = await make_job(database, payload={"job": 1})
    (own,) = await make_letters(database, job=job, payload={"own": 1}, labels={"a": "b"})
    (jobs,) = await make_letters(database, job=job, idempotency_key="key", priority=2)
    rows = {
        row["id"]: row for row in await database.fetch(sql("select * from foliot.dead_letters"))
    }
    assert (rows[own]["payload"], rows[own]["payload_is_jobs"]) == ({"own": 1}, False)
    assert (rows[own]["labels"], rows[own]["idempotency_key"]) == ({"a": "b"}, None)
    assert (rows[jobs]["payload"], rows[jobs]["payload_is_jobs"]) == ({"job": 1}, True)
    assert (rows[jobs]["priority"], rows[jobs]["idempotency_key"]) == (2, "key")
    assert rows[jobs]["scheduled_time"] < rows[jobs]["failed_at"] == NOW
    assert rows[jobs]["replay_at"] is None


async def test_what_expired_is_a_letter_like_others(database: Database) -> None:
    row = await make_execution(database, status="PENDING", start_by=NOW, payload=None)
    await expire(database, 10, NOW)
    letter = await read_letter(database, DEFAULT_TENANT, row.execution_id)
    assert (letter.reason, letter.total_attempts) == (Reason.EXPIRED, 0)
    assert letter.scheduled_time == row.scheduled_time
    report = await replay(database, DEFAULT_TENANT, [Replay(letter.id)], now=NOW)
    assert report.replayed[letter.id].created


async def test_letters_are_listed_by_their_failure_the_newest_first(database: Database) -> None:
    made = [
        (await make_letters(database, failed_at=NOW + number * SECOND))[0] for number in range(5)
    ]
    assert await listed(database) == made[::-1]
    assert await listed(database, from_=NOW + SECOND, to=NOW + 3 * SECOND) == [made[2], made[1]]


async def test_pages_go_on_where_the_one_before_ended(database: Database) -> None:
    """All of one moment, so that only ids tell them apart."""
    made = await make_letters(database, 7)
    for oldest_first in (False, True):
        seen: list[ExecutionId] = []
        after: LetterPlace | None = None
        while True:
            page = await list_letters(
                database,
                DEFAULT_TENANT,
                DeadLetterFilter(),
                after=after,
                limit=3,
                oldest_first=oldest_first,
            )
            seen += [letter.id for letter in page.letters]
            if len(page.letters) < 3:
                break
            after = LetterPlace(page.letters[-1].failed_at, page.letters[-1].id)
        assert seen == (made if oldest_first else made[::-1])


async def test_letters_are_found_by_what_is_asked(database: Database) -> None:
    job = await make_job(database)
    (late,) = await make_letters(database, job=job, failure=TIMEOUT, reason=Reason.POISON)
    (other,) = await make_letters(database)
    letter = await read_letter(database, DEFAULT_TENANT, late)
    assert await listed(database, job_id=job.job_id) == [late]
    assert await listed(database, reason=Reason.EXHAUSTED) == [other]
    assert await listed(database, error="timeout no answer") == [late]
    assert await listed(database, error="BROKE") == [other]
    assert await listed(database, fingerprint=letter.fingerprint) == [late]
    assert await listed(database, fingerprint=letter.fingerprint, job_id=job.job_id) == [late]
    assert await listed(database, fingerprint="none") == []
    await discard(database, DEFAULT_TENANT, late, "enough", NOW)
    await replay(database, DEFAULT_TENANT, [Replay(other)], now=NOW)
    assert await listed(database) == []
    assert await listed(database, kind=DeadLetterKind.DISCARDED) == [late]
    assert await listed(database, kind=DeadLetterKind.REPLAYED) == [other]
    assert await listed(database, kind=DeadLetterKind.REPLAYED, job_id=job.job_id) == []


async def test_a_page_ends_early_where_few_of_many_fit(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "SCANNED", 4)
    made = await make_letters(database, 6)
    (wanted,) = await make_letters(database, failure=TIMEOUT, failed_at=NOW - SECOND)
    looking = DeadLetterFilter(error="no answer")
    first = await list_letters(database, DEFAULT_TENANT, looking, limit=10)
    assert first.letters == []
    assert first.ended == LetterPlace(NOW, made[2])
    rest = await list_letters(database, DEFAULT_TENANT, looking, after=first.ended, limit=10)
    assert [letter.id for letter in rest.letters] == [wanted]


async def test_a_large_payload_is_left_out_of_lists(database: Database) -> None:
    (large,) = await make_letters(database, payload={"text": "x" * 9000})
    page = await list_letters(database, DEFAULT_TENANT, DeadLetterFilter(), limit=10)
    assert (page.letters[0].payload, page.letters[0].payload_omitted) == (None, True)
    whole = await read_letter(database, DEFAULT_TENANT, large)
    assert (whole.payload, whole.payload_omitted) == ({"text": "x" * 9000}, False)


async def test_groups_are_by_what_they_died_of(database: Database) -> None:
    job = await make_job(database)
    await make_letters(database, 3, job=job, failed_at=NOW)
    (last,) = await make_letters(database, job=job, failed_at=NOW + 2 * SECOND)
    (newest,) = await make_letters(database, failure=TIMEOUT, failed_at=NOW + 3 * SECOND)
    late, broken = await list_groups(database, DEFAULT_TENANT, None, limit=10)
    assert (late.number, late.sample.id, late.sample.error) == (
        1,
        newest,
        {"type": "TIMEOUT", "message": "no answer after 30 s"},
    )
    assert (broken.number, broken.first_failed_at, broken.last_failed_at, broken.sample.id) == (
        4,
        NOW,
        NOW + 2 * SECOND,
        last,
    )
    assert await count_groups(database, DEFAULT_TENANT, None) == 2
    assert await list_groups(database, DEFAULT_TENANT, job.job_id, limit=10) == [broken]
    place = (late.last_failed_at, late.fingerprint)
    assert await list_groups(database, DEFAULT_TENANT, None, after=place, limit=10) == [broken]
    await discard(database, DEFAULT_TENANT, newest, "no use", NOW)
    assert await list_groups(database, DEFAULT_TENANT, None, limit=10) == [broken]


async def test_the_first_reason_for_a_discard_counts(database: Database) -> None:
    (letter,) = await make_letters(database)
    first = await discard(database, DEFAULT_TENANT, letter, "no use", NOW)
    assert (first.kind, first.discard_reason) == (DeadLetterKind.DISCARDED, "no use")
    assert await discard(database, DEFAULT_TENANT, letter, "other", NOW + SECOND) == first
    report = await replay(database, DEFAULT_TENANT, [Replay(letter)], now=NOW)
    assert isinstance(report.refused[letter], DeadLetterClosed)
    assert "no use" in str(report.refused[letter])


async def test_what_was_replayed_cannot_be_discarded(database: Database) -> None:
    (letter,) = await make_letters(database)
    await replay(database, DEFAULT_TENANT, [Replay(letter)], now=NOW)
    with pytest.raises(DeadLetterClosed, match="was replayed as"):
        await discard(database, DEFAULT_TENANT, letter, "no use", NOW)
    assert (await read_letter(database, DEFAULT_TENANT, letter)).discarded_at is None


async def test_anothers_letter_is_not_there(database: Database) -> None:
    other = await make_tenant(database)
    (letter,) = await make_letters(database)
    assert (await list_letters(database, other, DeadLetterFilter(), limit=10)).letters == []
    assert await list_groups(database, other, None, limit=10) == []
    for asked in (read_letter(database, other, letter), discard(database, other, letter, "x", NOW)):
        with pytest.raises(DeadLetterNotFound):
            await asked
    report = await replay(database, other, [Replay(letter)], now=NOW)
    assert isinstance(report.refused[letter], DeadLetterNotFound)
    assert await listed(database) == [letter]


async def test_depth_and_the_age_of_the_oldest(database: Database) -> None:
    assert await read_depth(database, NOW) == dead_letters.Depth(0, 0.0)
    (oldest,) = await make_letters(database, failed_at=NOW)
    await make_letters(database, 2, failed_at=NOW + 10 * SECOND)
    assert await read_depth(database, NOW + 60 * SECOND) == dead_letters.Depth(3, 60.0)
    await discard(database, DEFAULT_TENANT, oldest, "no use", NOW)
    assert await read_depth(database, NOW + 60 * SECOND) == dead_letters.Depth(2, 50.0)
