"""A schedule is told in words and in instants before anything is saved; who fires is listed."""

from typing import Any

import pytest

from foliot.core.ids import SchedulerId
from foliot.core.model import CalendarRule
from foliot.core.schedule.calendar import Calendar
from foliot.store.calendars import put_calendar
from foliot.store.database import Database
from foliot.store.shards import Scheduler, read_leases, renew, take
from foliot.testing.rows import DEFAULT_TENANT, NOW, fresh_id, make_job
from foliot.testing.web import Client, client_of


@pytest.fixture
def client(database: Database) -> Client:
    return client_of(database)


async def test_a_preview_says_why_an_instant_moved(client: Client) -> None:
    told = await client.post(
        "/v1/schedules/preview",
        {
            "schedule": {"cron_expression": "30 2 * * *", "timezone": "Europe/Berlin"},
            "after": "2027-03-27T12:00:00Z",
            "count": 2,
        },
    )
    assert told.status == 200
    assert told.body["description"] == "every day at 02:30, Berlin time"
    moved, usual = told.body["fires"]
    assert (moved["at"], moved["local"]) == ("2027-03-28T01:00:00Z", "2027-03-28T03:00:00+02:00")
    assert moved["note"]
    assert (usual["at"], usual["note"]) == ("2027-03-29T00:30:00Z", None)


@pytest.mark.parametrize(
    ("schedule", "ats"),
    [
        ("0 9 * * *", ["2027-01-01T09:00:00Z", "2027-01-02T09:00:00Z"]),
        ({"interval_seconds": 0.5}, ["2027-01-01T00:00:00.500000Z", "2027-01-01T00:00:01Z"]),
        ({"run_at": "2027-02-01T00:00:00Z"}, ["2027-02-01T00:00:00Z"]),
        ({"delay_seconds": 2}, ["2027-01-01T00:00:02Z"]),
        ({"type": "immediate"}, ["2027-01-01T00:00:00Z"]),
        ({"type": "manual"}, []),
        ({"interval_seconds": 60, "max_runs": 1}, ["2027-01-01T00:01:00Z"]),
    ],
)
async def test_every_kind_of_schedule_has_a_preview(
    client: Client, schedule: object, ats: list[str]
) -> None:
    body = {"schedule": schedule, "after": "2027-01-01T00:00:00Z", "count": 2}
    told = await client.post("/v1/schedules/preview", body)
    assert told.status == 200, told.body
    assert [fire["at"] for fire in told.body["fires"]] == ats


async def test_without_a_beginning_it_begins_now(client: Client) -> None:
    told = await client.post("/v1/schedules/preview", {"schedule": "* * * * *"})
    assert len(told.body["fires"]) == 10


async def test_a_calendar_has_its_say(client: Client, database: Database) -> None:
    body = {
        "schedule": {"cron_expression": "0 9 * * *", "calendar": "office"},
        "after": "2027-01-01T00:00:00Z",
        "count": 2,
    }
    missing = await client.post("/v1/schedules/preview", body)
    assert missing.code == (400, "INVALID_SCHEDULE")
    office = Calendar("office", CalendarRule.SKIP, excluded_weekdays=frozenset({6, 7}))
    await put_calendar(database, DEFAULT_TENANT, office, changed_by="alice", now=NOW)
    told = await client.post("/v1/schedules/preview", body)
    assert [fire["at"] for fire in told.body["fires"]] == [
        "2027-01-01T09:00:00Z",
        "2027-01-04T09:00:00Z",
    ]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "VALIDATION_ERROR"),
        ({"schedule": "nonsense"}, "INVALID_CRON"),
        ({"schedule": {"cron_expression": "* * * * *", "timezone": "x"}}, "INVALID_TIMEZONE"),
        ({"schedule": "* * * * *", "count": 0}, "VALIDATION_ERROR"),
        ({"schedule": "* * * * *", "count": 1001}, "VALIDATION_ERROR"),
        ({"schedule": "* * * * *", "after": "x"}, "VALIDATION_ERROR"),
        ({"schedule": "* * * * *", "afer": "x"}, "VALIDATION_ERROR"),
        ({"schedule": None}, "VALIDATION_ERROR"),
        (
            {
                "schedule": {"cron_expression": "0 9 * * *", "end_at": "2027-01-01T00:00:00Z"},
                "after": "2027-06-01T00:00:00Z",
            },
            "INVALID_SCHEDULE",
        ),
        ({"schedule": {"after": {"jobs": ["nobody"]}}}, "INVALID_SCHEDULE"),
    ],
)
async def test_what_cannot_be_kept_has_no_preview(
    client: Client, body: dict[str, Any], code: str
) -> None:
    refused = await client.post("/v1/schedules/preview", body)
    assert refused.code == (400, code), refused.body


@pytest.mark.parametrize("year", ["0001", "1969", "9000", "9999"])
@pytest.mark.parametrize("schedule", ["* * * * *", {"delay_seconds": 300_000_000}])
async def test_a_preview_begins_in_a_year_that_a_schedule_may_lie_in(
    client: Client, schedule: object, year: str
) -> None:
    body = {"schedule": schedule, "after": f"{year}-01-01T00:00:00Z"}
    refused = await client.post("/v1/schedules/preview", body)
    assert refused.code == (400, "VALIDATION_ERROR")
    (detail,) = refused.error["details"]
    assert (detail["field"], detail["hint"]) == ("after", "use a time from 1970 to 8999")


@pytest.mark.parametrize("after", ["1970-01-01T00:00:00Z", "8999-12-31T23:59:59.999999Z"])
@pytest.mark.parametrize(
    "schedule", ["* * * * *", {"delay_seconds": 300_000_000}, {"interval_seconds": 300_000_000}]
)
async def test_the_first_and_the_last_of_these_years_have_a_preview(
    client: Client, schedule: object, after: str
) -> None:
    told = await client.post("/v1/schedules/preview", {"schedule": schedule, "after": after})
    assert told.status == 200, told.body
    assert told.body["fires"]


async def test_schedulers_are_listed_with_their_shards_and_how_late_they_are(
    client: Client, database: Database
) -> None:
    nobody = await client.get("/v1/schedulers")
    assert nobody.body == {
        "items": [],
        "next_cursor": None,
        "shards_without_owner": 64,
        "lag_seconds": 0.0,
    }
    node = Scheduler(SchedulerId(fresh_id()), "here", "1")
    now = (await renew(database, node, {})).now
    leases = await read_leases(database)
    await take(database, node.id, leases.leases[:3], now)
    await make_job(database, next_instant=now)
    told = (await client.get("/v1/schedulers")).body
    (item,) = told["items"]
    assert (item["scheduler_id"], item["host"], item["status"]) == (str(node.id), "here", "ACTIVE")
    assert item["shards"] == [0, 1, 2]
    assert told["shards_without_owner"] == 61
    assert 0 < told["lag_seconds"] < 60
