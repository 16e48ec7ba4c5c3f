"""`POST /v1/ledger/verify`: what is asked, what is answered, and to whom."""

from datetime import datetime, timedelta

import pytest

from foliot.api import ledger
from foliot.core.model import Job
from foliot.store.database import Database
from foliot.store.jobs import delete
from foliot.testing.database import sql
from foliot.testing.jobs import EVERY_MINUTE, create_job, fire_due, new_job
from foliot.testing.rows import make_tenant
from foliot.testing.web import Client, client_of

PATH = "/v1/ledger/verify"
MINUTE = timedelta(minutes=1)
NOW = sql("select date_trunc('minute', statement_timestamp())")
FORGET = sql("delete from foliot.executions where scheduled_time = $1")


@pytest.fixture
def client(database: Database) -> Client:
    return client_of(database)


async def begin(database: Database) -> datetime:
    """Ten minutes ago."""
    told: datetime = await database.fetch_value(NOW)
    return told - 10 * MINUTE


async def make_job(database: Database, at: datetime, **changes: object) -> Job:
    """With fires at one and two minutes, and none due for an hour after that."""
    job = (await create_job(database, new_job(EVERY_MINUTE, **changes), at)).job
    for n in (1, 2):
        await fire_due(database, at + n * MINUTE)
    await database.execute(
        sql(
            "update foliot.jobs set next_instant = $2, next_run_at = $2, status = 'PAUSED'"
            " where id = $1"
        ),
        job.job_id,
        at + 3 * MINUTE,
    )
    return job


def told(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


async def test_a_ledger_that_holds(database: Database, client: Client) -> None:
    at = await begin(database)
    await make_job(database, at)
    answer = await client.post(PATH)
    assert answer.status == 200, answer.body
    assert datetime.fromisoformat(answer.body.pop("checked_to")) >= at + 10 * MINUTE
    assert answer.body.pop("due") in (8, 9)
    assert answer.body == {
        "ok": True,
        "jobs": 1,
        "expected": 2,
        "fired": 2,
        "skipped": 0,
        "problem_counts": {},
        "problems": [],
        "truncated": False,
        "checked_from": None,
        "clamped": False,
        "next_cursor": None,
    }


async def test_what_is_wrong_is_told_in_words(database: Database, client: Client) -> None:
    at = await begin(database)
    job = await make_job(database, at)
    await database.execute(FORGET, at + MINUTE)
    answer = await client.post(
        PATH, {"job": job.name, "from": told(at), "to": told(at + 2 * MINUTE)}
    )
    assert (answer.status, answer.body["ok"]) == (200, False)
    assert (answer.body["checked_from"], answer.body["checked_to"]) == (
        told(at),
        told(at + 2 * MINUTE),
    )
    assert answer.body["problem_counts"] == {"MISSING": 1}
    assert answer.body["problems"] == [
        {
            "job_id": str(job.job_id),
            "job_name": job.name,
            "kind": "MISSING",
            "from_instant": told(at + MINUTE),
            "to_instant": told(at + MINUTE),
            "count": 1,
            "why": "version 1 has it; there is no execution and no skip record",
        }
    ]


async def test_a_job_is_meant_by_its_name_or_its_id(database: Database, client: Client) -> None:
    at = await begin(database)
    job, _ = await make_job(database, at), await make_job(database, at)
    for meant in (job.name, str(job.job_id)):
        assert (await client.post(PATH, {"job": meant})).body["jobs"] == 1
    await delete(database, job.tenant_id, job.job_id, changed_by="test")
    assert (await client.post(PATH, {"job": str(job.job_id)})).body["jobs"] == 1
    assert (await client.post(PATH, {"job": job.name})).code == (404, "JOB_NOT_FOUND")


async def test_a_tenant_sees_nothing_of_another(database: Database, client: Client) -> None:
    at = await begin(database)
    other = await make_tenant(database)
    job = await make_job(database, at, tenant_id=other)
    assert (await client.post(PATH)).body["jobs"] == 0
    assert (await client.post(PATH, {"job": str(job.job_id)})).code == (404, "JOB_NOT_FOUND")
    assert (await client.post(PATH, {"job": job.name})).code == (404, "JOB_NOT_FOUND")
    seen = await client.post(PATH, x_tenant_id=str(other))
    assert (seen.body["jobs"], seen.body["fired"]) == (1, 2)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"jobs": "x"}, "jobs"),
        ({"from": "yesterday"}, "from"),
        ({"from": 7}, "from"),
        ({"from": "0001-01-01T00:00:00Z"}, "from"),
        ({"from": "1969-12-31T23:59:59Z", "to": "9999-12-31T23:59:59Z"}, "from"),
        ({"from": "2027-01-02T00:00:00Z", "to": "2027-01-01T00:00:00Z"}, "to"),
        ({"job": ""}, "job"),
        ({"cursor": "made up"}, "cursor"),
    ],
)
async def test_what_cannot_be_meant_is_refused(
    client: Client, body: dict[str, object], field: str
) -> None:
    answer = await client.post(PATH, body)
    assert answer.status == 400, answer.body
    assert [each["field"] for each in answer.error["details"]] == [field]


async def test_from_the_first_time_to_the_last(database: Database, client: Client) -> None:
    await make_job(database, await begin(database))
    ever = await client.post(PATH, {"from": "1970-01-01T00:00:00Z", "to": "9999-12-31T23:59:59Z"})
    assert (ever.body["ok"], ever.body["fired"]) == (True, 2)
    never = await client.post(PATH, {"from": "9999-12-31T23:59:59.999999Z"})
    assert (never.body["ok"], never.body["fired"]) == (True, 0)


async def test_problems_are_all_counted_and_the_first_named(
    database: Database, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "PROBLEMS_NAMED", 2)
    at = await begin(database)
    for _ in range(3):
        await make_job(database, at)
    await database.execute(FORGET, at + MINUTE)
    answer = await client.post(PATH)
    assert (len(answer.body["problems"]), answer.body["truncated"]) == (2, True)
    assert answer.body["problem_counts"] == {"MISSING": 3}


async def test_one_request_does_a_part_and_says_where_to_go_on(
    database: Database, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "ROWS_MAX", 4)
    at = await begin(database)
    for _ in range(5):
        await make_job(database, at)
    jobs, cursors, cursor = [], [], None
    while True:
        answer = await client.post(PATH, {"cursor": cursor})
        assert answer.status == 200, answer.body
        assert answer.body["ok"]
        jobs.append(answer.body["jobs"])
        cursor = answer.body["next_cursor"]
        if cursor is None:
            break
        cursors.append(cursor)
    assert sum(jobs) == 5
    assert max(jobs) <= 2
    elsewhere = await client.post(PATH, {"cursor": cursors[0], "from": told(at)})
    assert elsewhere.code == (400, "INVALID_CURSOR")


async def test_a_job_with_too_much_history_for_a_request_is_refused(
    database: Database, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "ROWS_MAX", 1)
    at = await begin(database)
    job = await make_job(database, at)
    for body in ({}, {"job": job.name}):
        answer = await client.post(PATH, body)
        assert answer.code == (400, "VALIDATION_ERROR")
        assert answer.error["details"][0]["field"] == "from"
    assert (await client.post(PATH, {"from": told(at + 2 * MINUTE)})).body["fired"] == 1


async def test_a_body_of_nothing_is_all_there_is(client: Client) -> None:
    for body in (None, {}, {"job": None, "from": None, "to": None, "cursor": None}):
        answer = await client.post(PATH, body)
        assert (answer.status, answer.body["ok"], answer.body["jobs"]) == (200, True, 0)
