"""A completion callback is in one hand at a time, and comes back from a hand that is gone."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import asyncpg
import pytest

from foliot.core.delivery import Delivered, GivenUp, TryAgain
from foliot.core.ids import ExecutionId
from foliot.core.states import ExecutionEvent
from foliot.store.arrears import read_arrears
from foliot.store.database import Database
from foliot.store.deliveries import (
    LEASE_SECONDS,
    ClaimedDelivery,
    DeliveryState,
    claim_deliveries,
    end_claim,
    give_back,
    list_deliveries,
    redeliver,
)
from foliot.store.forgetting import forget_deliveries
from foliot.testing.database import sql
from foliot.testing.deliveries import make_ended
from foliot.testing.rows import DEFAULT_TENANT, NOW, make_tenant

DELIVERY = sql("select * from foliot.deliveries where id = $1")
ENTRY: dict[str, Any] = {"attempt_number": 1, "http_status": 200}
URL = "https://example.com/hook"


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


async def claim(
    database: Database, limit: int = 10, now: datetime = NOW, window: float | None = None
) -> list[ClaimedDelivery]:
    return await claim_deliveries(database, limit, window_seconds=window, now=now)


async def row_of(database: Database, execution_id: ExecutionId) -> asyncpg.Record:
    (row,) = await database.fetch(DELIVERY, execution_id)
    return row


async def test_an_end_is_taken_once_with_where_it_goes(database: Database) -> None:
    (execution_id,) = await make_ended(database, URL)
    assert await claim(database, now=later(-1)) == []
    (claimed,) = await claim(database, now=later(3))
    assert (claimed.execution_id, claimed.fence, claimed.status) == (execution_id, 3, "SUCCEEDED")
    assert (claimed.callback_url, claimed.claim_number) == (URL, 1)
    assert (claimed.attempt_number, claimed.age_seconds) == (0, 3)
    assert await claim(database, now=later(4)) == []


async def test_it_goes_where_the_job_says_now(database: Database) -> None:
    await make_ended(database, URL)
    await database.execute(
        sql("update foliot.job_versions set definition = definition - 'callback_url'")
    )
    (claimed,) = await claim(database)
    assert claimed.callback_url is None


async def test_many_at_once_share_them_without_one_twice(
    database: Database, database_url: str
) -> None:
    ids = await make_ended(database, URL, 60)
    async with Database(database_url) as other:
        taken = await asyncio.gather(*(claim(each, 7) for each in (database, other) * 6))
    found = [claimed.execution_id for batch in taken for claimed in batch]
    assert len(found) == len(set(found))
    found += [claimed.execution_id for claimed in await claim(database, 60)]
    assert sorted(found) == ids


async def test_one_that_somebody_has_a_lock_on_is_passed_over(database: Database) -> None:
    first, second = await make_ended(database, URL, 2)
    async with database.transaction() as session:
        await session.fetch(sql("select from foliot.deliveries where id = $1 for update"), first)
        assert [each.execution_id for each in await claim(database)] == [second]
    assert [each.execution_id for each in await claim(database)] == [first]


async def test_what_a_dead_hand_held_is_due_when_its_lease_is_over(database: Database) -> None:
    await make_ended(database, URL)
    (first,) = await claim(database)
    assert await claim(database, now=later(LEASE_SECONDS - 1)) == []
    (second,) = await claim(database, now=later(LEASE_SECONDS))
    assert (second.claim_number, second.attempt_number) == (2, 0)
    assert not await end_claim(database, first, TryAgain(5), ENTRY, later(50)), "it was taken over"
    assert await end_claim(database, second, Delivered(), ENTRY, later(50))
    assert not await end_claim(database, second, GivenUp(), ENTRY, later(51)), "it is over"
    assert await claim(database, now=later(900)) == []


async def test_a_try_that_failed_is_due_again_and_told(database: Database) -> None:
    (execution_id,) = await make_ended(database, URL, event=ExecutionEvent.FAIL)
    (claimed,) = await claim(database)
    assert claimed.status == "FAILED"
    await end_claim(database, claimed, TryAgain(20), {"http_status": 503}, later(1))
    assert await claim(database, now=later(20)) == []
    (again,) = await claim(database, now=later(21))
    assert again.attempt_number == 1
    await end_claim(database, again, Delivered(), {"http_status": 204}, later(22))
    (told,) = await list_deliveries(database, DEFAULT_TENANT, execution_id)
    assert (told.state, told.attempt_number) == (DeliveryState.DELIVERED, 2)
    assert told.delivered_at == later(22)
    assert [entry["http_status"] for entry in told.attempts] == [204, 503]
    assert datetime.fromisoformat(told.attempts[1]["at"]) == later(1)


async def test_what_was_not_tried_costs_nothing(database: Database) -> None:
    (execution_id,) = await make_ended(database, URL)
    (claimed,) = await claim(database)
    assert await give_back(database, claimed, 2.0, NOW)
    (again,) = await claim(database, now=later(2))
    assert again.attempt_number == 0
    assert (await row_of(database, execution_id))["attempts"] == []


async def test_the_log_keeps_the_last_twenty(database: Database) -> None:
    (execution_id,) = await make_ended(database, URL)
    for number in range(25):
        (claimed,) = await claim(database, now=later(number))
        await end_claim(database, claimed, TryAgain(0), {"attempt_number": number}, later(number))
    (told,) = await list_deliveries(database, DEFAULT_TENANT, execution_id)
    assert told.attempt_number == 25
    assert [entry["attempt_number"] for entry in told.attempts] == list(range(24, 4, -1))


@pytest.mark.parametrize("decision", [Delivered(), GivenUp()])
async def test_what_is_over_can_be_asked_for_again(
    database: Database, decision: Delivered | GivenUp
) -> None:
    (execution_id,) = await make_ended(database, URL)
    (claimed,) = await claim(database)
    await end_claim(database, claimed, decision, ENTRY, NOW)
    await redeliver(database, DEFAULT_TENANT, execution_id, later(90_000))
    (again,) = await claim(database, now=later(90_001))
    assert (again.attempt_number, again.age_seconds) == (0, 1), "patience begins anew"
    (told,) = await list_deliveries(database, DEFAULT_TENANT, execution_id)
    assert told.state is DeliveryState.PENDING
    assert len(told.attempts) == 1, "what was tried before stays in the log"


async def test_what_is_under_way_is_not_sent_twice_for_being_asked_for(database: Database) -> None:
    (execution_id,) = await make_ended(database, URL)
    (claimed,) = await claim(database)
    await redeliver(database, DEFAULT_TENANT, execution_id, later(1))
    assert await claim(database, now=later(2)) == []
    await end_claim(database, claimed, TryAgain(3600), ENTRY, later(2))
    await redeliver(database, DEFAULT_TENANT, execution_id, later(3))
    assert len(await claim(database, now=later(3))) == 1


async def test_nobody_sees_or_repeats_what_is_anothers(database: Database) -> None:
    (execution_id,) = await make_ended(database, URL)
    stranger = await make_tenant(database)
    assert await list_deliveries(database, stranger, execution_id) == []
    (claimed,) = await claim(database)
    await end_claim(database, claimed, GivenUp(), ENTRY, NOW)
    await redeliver(database, stranger, execution_id, later(1))
    assert await claim(database, now=later(2)) == []


async def test_a_short_look_passes_over_what_has_been_due_for_long(database: Database) -> None:
    await make_ended(database, URL)
    assert await claim(database, now=later(11), window=10.0) == []
    assert len(await claim(database, now=later(11))) == 1


async def test_only_what_nobody_tries_is_late(database: Database) -> None:
    await make_ended(database, URL, 2)
    assert (await read_arrears(database, (), later(61))).callback_seconds == 61
    first, second = await claim(database, now=later(61))
    await end_claim(database, first, GivenUp(), ENTRY, later(61))
    await end_claim(database, second, TryAgain(3600), ENTRY, later(61))
    assert (await read_arrears(database, (), later(3600))).callback_seconds == 0


async def test_after_a_month_what_is_over_is_forgotten(database: Database) -> None:
    first, second, third = await make_ended(database, URL, 3)
    by_id = {each.execution_id: each for each in await claim(database)}
    await end_claim(database, by_id[first], Delivered(), ENTRY, NOW)
    await end_claim(database, by_id[second], GivenUp(), ENTRY, NOW)
    assert await forget_deliveries(database, NOW + timedelta(days=29)) == 0
    assert await forget_deliveries(database, NOW + timedelta(days=31)) == 2
    assert len(await database.fetch(DELIVERY, third)) == 1
