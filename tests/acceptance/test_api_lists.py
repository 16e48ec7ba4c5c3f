"""Lists: filters, pages that neither hide nor repeat, cursors that lead nowhere else."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from foliot.api.pagination import Pages
from foliot.api.schemas.queries import ExecutionQuery, JobQuery, ListQuery, WorkerQuery
from foliot.core.states import ExecutionEvent
from foliot.store.database import Database
from foliot.store.finishing import Outcome, finish
from foliot.testing.rows import DEFAULT_TENANT, NOW, JobRow, make_executions, make_job, make_worker
from foliot.testing.web import Answer, Client, client_of

DAY = timedelta(days=1)


@pytest.fixture
def client(database: Database) -> Client:
    return client_of(database)


async def names(client: Client, **query: object) -> list[str]:
    found = await client.get("/v1/jobs", **query)
    assert found.status == 200, found.body
    return [item["name"] for item in found.body["items"]]


async def walk(client: Client, path: str, key: str, **query: object) -> list[str]:
    """Every item, page by page."""
    found: list[str] = []
    cursor: dict[str, Any] = {}
    for _ in range(20):
        page = await client.get(path, **query, **cursor)
        assert page.status == 200, page.body
        found += [item[key] for item in page.body["items"]]
        if page.body["next_cursor"] is None:
            return found
        assert len(page.body["items"]) == query["limit"]
        cursor = {"cursor": page.body["next_cursor"]}
    raise AssertionError("the list has no end")


async def create_some(client: Client) -> None:
    for body in (
        {"name": "b-mail", "tags": ["post", "x"], "labels": {"team": "a"}, "job_type": "send"},
        {"name": "a-mail", "schedule": "0 9 * * *", "queue": "slow", "description": "Big REPORT"},
        {"name": "c", "interval_seconds": 3600, "target": {"url": "https://shop.example/x"}},
    ):
        made = await client.post("/v1/jobs", body)
        assert made.status == 201, made.body
    first = (await client.get("/v1/jobs", name="b")).body["items"][0]
    await client.post(f"/v1/jobs/{first['job_id']}/pause")


FILTERED: list[tuple[dict[str, object], list[str]]] = [
    ({}, ["c", "a-mail", "b-mail"]),
    ({"sort": "name"}, ["a-mail", "b-mail", "c"]),
    ({"status": "PAUSED"}, ["b-mail"]),
    ({"status": ["PAUSED", "active"]}, ["c", "a-mail", "b-mail"]),
    ({"status": "paused,active"}, ["c", "a-mail", "b-mail"]),
    ({"tag": "post"}, ["b-mail"]),
    ({"tag": ["post", "y"]}, []),
    ({"label.team": "a"}, ["b-mail"]),
    ({"label.team": "b"}, []),
    ({"label": "team=a"}, ["b-mail"]),
    ({"name": "a-"}, ["a-mail"]),
    ({"name": "mail"}, []),
    ({"queue": "slow"}, ["a-mail"]),
    ({"target_type": "http"}, ["c"]),
    ({"schedule_type": "cron"}, ["a-mail"]),
    ({"created_by": "operator", "limit": 1}, ["c"]),
    ({"created_by": "nobody"}, []),
    ({"search": "report"}, ["a-mail"]),
    ({"search": "SHOP.example"}, ["c"]),
    ({"search": "send"}, ["b-mail"]),
    ({"last_status": "failed"}, []),
]


async def test_jobs_are_filtered(client: Client) -> None:
    await create_some(client)
    for query, expected in FILTERED:
        assert await names(client, **query) == expected, query
    soonest = await names(client, sort="next_run_at", status="active")
    assert sorted(soonest) == ["a-mail", "c"]


@pytest.mark.parametrize("sort", ["created_at", "name", "next_run_at"])
async def test_jobs_are_walked_page_by_page(client: Client, sort: str) -> None:
    long = "\U0001f570" * 190  # a name of the most bytes that there can be
    for number in range(5):
        schedule = {"interval_seconds": 100 + number} if number < 3 else {}
        await client.post("/v1/jobs", {"name": f"{long}-{number}", **schedule})
    everything = await names(client, sort=sort)
    assert len(everything) == 5
    for limit in (1, 2, 4):
        assert await walk(client, "/v1/jobs", "name", sort=sort, limit=limit) == everything
    counted = await client.get("/v1/jobs", count="true", limit=2)
    assert counted.body["total"] == 5
    assert "total" not in (await client.get("/v1/jobs")).body


async def test_the_last_outcome_of_a_job_can_be_asked_for(
    client: Client, database: Database
) -> None:
    job = await make_job(database)
    worker = await make_worker(database)
    (row,) = await make_executions(database, job, 1, status="RUNNING", worker_id=worker)
    failed = Outcome(row.execution_id, row.fence, ExecutionEvent.FAIL, started_at=NOW)
    await finish(database, worker, [failed], now=NOW)
    assert await names(client, last_status="failed") == [job.name]
    assert await names(client, last_status="succeeded") == []
    (item,) = (await client.get("/v1/jobs", recent=20)).body["items"]
    (end,) = item["recent"]
    assert (end["execution_id"], end["status"]) == (str(row.execution_id), "FAILED")
    assert end.keys() == {"execution_id", "status", "scheduled_time", "finished_at", "duration_ms"}
    assert (await client.get("/v1/jobs", recent=101)).code == (400, "VALIDATION_ERROR")


async def make_history(database: Database) -> tuple[JobRow, JobRow]:
    """Of one job two live and two finished executions, of another one each, a day apart."""
    first, second = await make_job(database), await make_job(database)
    worker = await make_worker(database)
    for job, days in ((first, [4, 3, 2, 1]), (second, [6, 5])):
        for number, back in enumerate(days):
            over = number % 2 == 0
            (row,) = await make_executions(
                database,
                job,
                1,
                scheduled_time=NOW - back * DAY,
                status="RUNNING" if over else "QUEUED",
                worker_id=worker if over else None,
                tags=["odd"] if over else ["even"],
                labels={"n": str(back)},
                trigger="SCHEDULE" if over else "MANUAL",
            )
            if over:
                event = ExecutionEvent.SUCCEED if job is first else ExecutionEvent.FAIL
                end = Outcome(row.execution_id, row.fence, event)
                await finish(database, worker, [end], now=NOW - back * DAY + DAY / 2)
    return first, second


async def days(client: Client, path: str = "/v1/executions", **query: object) -> list[int]:
    """How many days back each was scheduled."""
    found = await client.get(path, **query)
    assert found.status == 200, found.body
    labels = [item["labels"]["n"] for item in found.body["items"]]
    return [int(each) for each in labels]


async def test_live_and_finished_executions_are_one_list(
    client: Client, database: Database
) -> None:
    first, second = await make_history(database)
    assert await days(client) == [1, 2, 3, 4, 5, 6]
    assert await days(client, job_id=first.job_id) == [1, 2, 3, 4]
    assert await days(client, f"/v1/jobs/{second.job_id}/executions") == [5, 6]
    assert await days(client, status="succeeded") == [2, 4]
    assert await days(client, status="FAILED,queued") == [1, 3, 5, 6]
    assert await days(client, trigger="manual") == [1, 3, 5]
    assert await days(client, tag="odd") == [2, 4, 6]
    assert await days(client, **{"label.n": "3"}) == [3]
    assert await days(client, queue="default", limit=2) == [1, 2]
    assert await days(client, queue="other") == []
    assert await days(client, worker_id="nonsense") == []
    assert await days(client, priority="critical") == []
    bounds = {"from": (NOW - 4 * DAY).isoformat(), "to": (NOW - 2 * DAY).isoformat()}
    assert await days(client, **bounds) == [3, 4]
    assert await days(client, start_date=bounds["from"], end_date=bounds["to"]) == [3, 4]
    for limit in (1, 2, 5):
        seen = await walk(client, "/v1/executions", "job_id", limit=limit)
        assert seen == [str(first.job_id)] * 4 + [str(second.job_id)] * 2
    counted = await client.get("/v1/executions", count="true", job_id=first.job_id, limit=1)
    assert counted.body["total"] == 4


async def test_an_execution_that_ends_between_two_pages_is_seen_once(
    client: Client, database: Database
) -> None:
    job = await make_job(database)
    worker = await make_worker(database)
    rows = await make_executions(database, job, 4, status="RUNNING", worker_id=worker)
    first = await client.get("/v1/executions", limit=2)
    ends = [Outcome(row.execution_id, row.fence, ExecutionEvent.SUCCEED) for row in rows]
    await finish(database, worker, ends, now=NOW)
    rest = await client.get("/v1/executions", limit=2, cursor=first.body["next_cursor"])
    seen = [item["execution_id"] for page in (first, rest) for item in page.body["items"]]
    assert seen == sorted([str(row.execution_id) for row in rows], reverse=True)
    assert [item["status"] for item in rest.body["items"]] == ["SUCCEEDED"] * 2


async def test_a_cursor_leads_to_its_own_list_only(client: Client) -> None:
    for number in range(3):
        await client.post("/v1/jobs", {"name": f"job-{number}"})
    cursor = (await client.get("/v1/jobs", limit=1)).body["next_cursor"]
    assert (await client.get("/v1/jobs", limit=2, cursor=cursor)).status == 200
    for query in (
        {"cursor": cursor, "status": "active"},
        {"cursor": cursor, "sort": "name"},
        {"cursor": cursor[:-2]},
        {"cursor": cursor + "A"},
        {"cursor": "nonsense"},
        {"cursor": "é"},
        {"cursor": "A" * 3000},
    ):
        assert (await client.get("/v1/jobs", **query)).code == (400, "INVALID_CURSOR")
    other = await client.get("/v1/executions", cursor=cursor)
    assert other.code == (400, "INVALID_CURSOR")


@pytest.mark.parametrize(
    ("path", "sort", "place"),
    [
        ("/v1/jobs", "created_at", ["soon", "x"]),
        ("/v1/jobs", "created_at", ["2027-01-01T00:00:00", str(UUID(int=1))]),
        ("/v1/jobs", "created_at", [5, str(UUID(int=1))]),
        ("/v1/jobs", "created_at", ["2027-01-01T00:00:00+00:00"]),
        ("/v1/jobs", "name", [5, str(UUID(int=1))]),
        ("/v1/jobs", "name", ["a\0b", str(UUID(int=1))]),
        ("/v1/jobs", "next_run_at", [None, None]),
        ("/v1/executions", None, []),
        ("/v1/executions", None, [7]),
        ("/v1/workers", None, ["x", "y"]),
    ],
)
async def test_a_cursor_that_somebody_forged_is_looked_at_like_any_input(
    path: str, sort: str | None, place: list[Any]
) -> None:
    client = client_of(Database("postgresql://127.0.0.1:1/nowhere"))
    query = {"sort": sort} if sort else {}
    shapes: dict[str, ListQuery] = {
        "/v1/jobs": JobQuery.model_validate(query),
        "/v1/executions": ExecutionQuery.model_validate({}),
        "/v1/workers": WorkerQuery(),
    }
    what = {"/v1/jobs": "jobs", "/v1/executions": "executions None", "/v1/workers": "workers"}
    pages = Pages(f"{DEFAULT_TENANT} {what[path]} {shapes[path].filters()}")
    refused = await client.get(path, **query, cursor=pages.cursor(place))
    assert refused.code == (400, "INVALID_CURSOR")


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/executions", "/v1/workers"])
@pytest.mark.parametrize(
    ("query", "field", "hint"),
    [
        ({"page": 2}, "page", "pass next_cursor of an answer as cursor"),
        ({"limit": 0}, "limit", None),
        ({"limit": 1001}, "limit", None),
        ({"limit": "all"}, "limit", None),
        ({"stauts": "x"}, "stauts", "did you mean status?"),
        ({"status": "sleeping"}, "status[0]", None),
        ({"count": "maybe"}, "count", None),
    ],
)
async def test_a_question_that_makes_no_sense_is_refused(
    path: str, query: dict[str, object], field: str, hint: str | None
) -> None:
    client = client_of(Database("postgresql://127.0.0.1:1/nowhere"))
    if path == "/v1/workers" and "count" in query:
        return
    refused: Answer = await client.get(path, **query)
    assert refused.code == (400, "VALIDATION_ERROR")
    assert refused.error["details"][0]["field"] == field
    assert hint is None or refused.error["hint"] == hint


@pytest.mark.parametrize(
    "query",
    [
        {"search": "a\0b"},
        {"target_type": "\0"},
        {"target_type": "ftp"},
        {"from": "yesterday"},
        {"label": "team"},
        {"priority": "11"},
        {"trigger": "sometimes"},
    ],
)
async def test_a_value_that_cannot_be_is_refused(query: dict[str, object]) -> None:
    client = client_of(Database("postgresql://127.0.0.1:1/nowhere"))
    of_jobs = query.keys() & {"search", "target_type"}
    path = "/v1/jobs" if of_jobs else "/v1/executions"
    assert (await client.get(path, **query)).code == (400, "VALIDATION_ERROR")


async def test_workers_are_listed_with_what_they_have_in_hand(
    client: Client, database: Database
) -> None:
    worker = await make_worker(database, labels=["gpu"], region="eu")
    await make_worker(database, status="DEAD", registered_at=NOW - DAY)
    job = await make_job(database)
    await make_executions(database, job, 2, status="RUNNING", worker_id=worker)
    page = await client.get("/v1/workers")
    first, dead = page.body["items"]
    assert (first["worker_id"], first["current_load"], first["capacity"]) == (str(worker), 2, 100)
    assert (first["labels"], first["region"], dead["status"]) == (["gpu"], "eu", "DEAD")
    assert first.keys() >= {
        "worker_id",
        "name",
        "host",
        "status",
        "capacity",
        "current_load",
        "queues",
        "labels",
        "region",
        "version",
        "registered_at",
        "last_heartbeat_at",
    }
    assert await walk(client, "/v1/workers", "worker_id", limit=1) == [
        first["worker_id"],
        dead["worker_id"],
    ]
    alive = await client.get("/v1/workers", status="active")
    assert [item["worker_id"] for item in alive.body["items"]] == [str(worker)]
