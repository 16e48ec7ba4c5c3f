"""A request for executions that comes again is known by what its sender says it is."""

from dataclasses import replace

import pytest

from foliot.core.errors import IdempotencyKeyReused
from foliot.core.limits import key_limit
from foliot.store.database import Database
from foliot.store.enqueuing import Request, Wanted, enqueue, find_enqueued
from foliot.testing.database import sql
from foliot.testing.rows import DEFAULT_TENANT, NOW, make_job, make_tenant

REQUEST = Request(DEFAULT_TENANT, "enqueue", "r1", NOW)


async def test_who_says_what_a_request_contains_is_not_asked_for_more(database: Database) -> None:
    """Between two copies the trace changes, the limit of the job, and which job has the name."""
    job, other = await make_job(database), await make_job(database)
    limits = [key_limit(DEFAULT_TENANT, "k", most) for most in (1, 2)]
    wanted = [
        Wanted(job.job_id, concurrency=limits[0], trace_id="a"),
        Wanted(other.job_id, concurrency=limits[1], trace_id="b"),
    ]
    known = [replace(REQUEST, contents=contents) for contents in (b"a", b"b")]
    answers = [(await enqueue(database, known[0], [each], NOW))[0] for each in wanted]
    assert [answer.replayed for answer in answers] == [False, True]
    assert answers[0].execution_id == answers[1].execution_id
    assert await database.fetch_value(sql("select max_running from foliot.limits")) == 1
    with pytest.raises(IdempotencyKeyReused):
        await enqueue(database, known[1], wanted[:1], NOW)


async def test_what_a_request_got_is_found_by_its_id(database: Database) -> None:
    job = await make_job(database)
    wanted = [Wanted(job.job_id, unique_key="u")] * 2
    made = await enqueue(database, REQUEST, wanted, NOW)
    found = await find_enqueued(database, DEFAULT_TENANT, "enqueue", "r1")
    assert found == [replace(each, replayed=True) for each in made]
    stranger = await make_tenant(database)
    assert await find_enqueued(database, stranger, "enqueue", "r1") is None
    assert await find_enqueued(database, DEFAULT_TENANT, "replay", "r1") is None
    assert await find_enqueued(database, DEFAULT_TENANT, "enqueue", "r") is None
