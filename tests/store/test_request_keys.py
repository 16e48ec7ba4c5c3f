"""Idempotency keys: one copy of a request is at work, the others wait for it or hear its answer."""

import asyncio
from datetime import timedelta

import pytest

from foliot.core.errors import IdempotencyKeyReused
from foliot.store.database import Database
from foliot.store.request_keys import (
    ABANDONED_SECONDS,
    RequestKey,
    abandon,
    begin,
    keep_answer,
    release,
)
from foliot.testing.rows import DEFAULT_TENANT, NOW, make_tenant

KEY = RequestKey(DEFAULT_TENANT, "POST /v1/jobs", "k", b"hash")
SECOND = timedelta(seconds=1)


async def test_the_first_is_new_and_the_second_finds_it_at_work(database: Database) -> None:
    first = await begin(database, KEY, NOW)
    second = await begin(database, KEY, NOW + SECOND)
    assert (first.at_work, second.at_work) == (False, True)
    assert (first.answer, second.answer) == (None, None)


async def test_many_at_once_are_one_at_work(database: Database) -> None:
    found = await asyncio.gather(*(begin(database, KEY, NOW) for _ in range(8)))
    assert sorted(each.at_work for each in found) == [False] + [True] * 7
    assert len({each.id for each in found}) == 1


async def test_an_answer_is_told_for_a_day(database: Database) -> None:
    kept = await begin(database, KEY, NOW)
    await keep_answer(database, kept, '{"status": 201}')
    day = timedelta(hours=24)
    later = await begin(database, KEY, NOW + day - SECOND)
    assert (later.at_work, later.answer) == (False, {"status": 201})
    anew = await begin(database, KEY, NOW + day)
    assert (anew.at_work, anew.answer) == (False, None)
    assert anew.id != kept.id
    # Whoever was at work on the old one has no say in the new one.
    await keep_answer(database, kept, '{"status": 500}')
    await release(database, kept, NOW)
    assert (await begin(database, KEY, NOW + day + SECOND)).at_work


async def test_what_a_dead_node_began_is_taken_over_under_the_same_id(database: Database) -> None:
    begun = await begin(database, KEY, NOW)
    patience = timedelta(seconds=ABANDONED_SECONDS)
    assert (await begin(database, KEY, NOW + patience)).at_work
    taken = await begin(database, KEY, NOW + patience + SECOND)
    assert not taken.at_work
    assert (taken.id, taken.mark) == (begun.id, begun.mark)


async def test_the_first_answer_stays(database: Database) -> None:
    kept = await begin(database, KEY, NOW)
    await keep_answer(database, kept, '{"status": 201}')
    await keep_answer(database, kept, '{"status": 202}')
    await release(database, kept, NOW)
    assert (await begin(database, KEY, NOW)).answer == {"status": 201}


async def test_a_released_key_is_new(database: Database) -> None:
    first = await begin(database, KEY, NOW)
    assert first.is_new
    await release(database, first, NOW + timedelta(seconds=ABANDONED_SECONDS))
    again = await begin(database, KEY, NOW + SECOND)
    assert (again.is_new, again.at_work) == (True, False)


async def test_who_is_so_late_that_another_may_have_taken_over_releases_nothing(
    database: Database,
) -> None:
    first = await begin(database, KEY, NOW)
    late = NOW + timedelta(seconds=ABANDONED_SECONDS) + SECOND
    assert not (await begin(database, KEY, late)).at_work
    await release(database, first, late)
    assert not (await begin(database, KEY, late)).is_new


async def test_a_key_that_was_given_up_is_not_released(database: Database) -> None:
    first = await begin(database, KEY, NOW)
    await abandon(database, first)
    await release(database, first, NOW)
    again = await begin(database, KEY, NOW)
    assert (again.is_new, again.at_work, again.mark) == (False, False, first.mark)


async def test_a_mark_is_short_however_long_the_key_is(database: Database) -> None:
    """It is itself kept as a key of at most 1024 bytes."""
    keys = [end.rjust(255, "\N{GRINNING FACE}") for end in "ab"]
    marks = [
        (await begin(database, RequestKey(DEFAULT_TENANT, KEY.route, key, b"hash"), NOW)).mark
        for key in keys
    ]
    assert len(set(marks)) == 2
    assert all(mark.isascii() and len(mark) < 100 for mark in marks)


async def test_another_request_with_the_key_is_refused(database: Database) -> None:
    await begin(database, KEY, NOW)
    with pytest.raises(IdempotencyKeyReused):
        await begin(database, RequestKey(DEFAULT_TENANT, KEY.route, KEY.key, b"other"), NOW)


async def test_a_key_is_of_one_tenant_and_one_route(database: Database) -> None:
    tenant = await make_tenant(database)
    keys = [
        KEY,
        RequestKey(tenant, KEY.route, KEY.key, KEY.request_hash),
        RequestKey(DEFAULT_TENANT, "POST /v1/executions", KEY.key, KEY.request_hash),
    ]
    found = [await begin(database, key, NOW) for key in keys]
    assert [each.at_work for each in found] == [False] * 3
    assert len({each.id for each in found}) == 3


async def test_who_gives_up_lets_the_next_copy_go_on_under_the_same_id(database: Database) -> None:
    first = await begin(database, KEY, NOW)
    await abandon(database, first)
    second = await begin(database, KEY, NOW + SECOND)
    assert (second.at_work, second.is_new) == (False, False)
    assert (second.id, second.mark) == (first.id, first.mark)
    await keep_answer(database, second, '{"status": 201}')
    await abandon(database, first)
    assert (await begin(database, KEY, NOW + 2 * SECOND)).answer == {"status": 201}


async def test_a_key_that_was_given_up_is_at_work_again_a_day_later(database: Database) -> None:
    await abandon(database, await begin(database, KEY, NOW))
    day = timedelta(hours=24)
    assert not (await begin(database, KEY, NOW + day)).at_work
    assert (await begin(database, KEY, NOW + day + SECOND)).at_work
