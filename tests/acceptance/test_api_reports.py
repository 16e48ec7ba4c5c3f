"""What an HTTP target took over ends as it says, under its fence and under no other."""

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest

from foliot.core.ids import ExecutionId, WorkerId
from foliot.core.model import TargetType
from foliot.store.claiming import ClaimRequest, claim
from foliot.store.database import Database
from foliot.store.errors import DatabaseUnreachable
from foliot.store.handing_over import HandOver, HeldExecution, hand_over, read_held
from foliot.store.lanes import list_servable
from foliot.store.progress import write_progress
from foliot.store.workers import REMOTE, WorkerProfile, register
from foliot.testing.database import sql
from foliot.testing.rows import make_tenant
from foliot.testing.web import Answer, Client, client_of

PROFILE = WorkerProfile(
    "w", "host", "0", ["default"], 10, handlers=["work"], target_types=list(TargetType)
)
HOOK = {"type": "HTTP", "url": "https://example.com/hook"}


@dataclass(frozen=True)
class Desk:
    """A worker that calls, and a target that reports."""

    client: Client
    database: Database
    worker_id: WorkerId

    async def claimed(self, **job: object) -> dict[str, Any]:
        """An execution in the worker's hands."""
        name = f"job-{uuid4()}"
        made = await self.client.post("/v1/jobs", {"name": name, "target": HOOK, **job})
        assert made.status == 201, made.body
        asked = await self.client.post("/v1/executions", {"job": name})
        lanes = (await list_servable(self.database, PROFILE))["default"]
        request = ClaimRequest(self.worker_id, "default", lanes, 1)
        (taken,) = await claim(self.database, request)
        assert str(taken.execution_id) == asked.body["execution_id"]
        return {"id": asked.body["execution_id"], "fence": taken.fence}

    async def handed_over(self, **job: object) -> dict[str, Any]:
        made = await self.claimed(**job)
        await self.hand_over(made)
        return made

    async def hand_over(self, made: dict[str, Any]) -> None:
        word = HandOver(ExecutionId(made["id"]), made["fence"])
        assert await hand_over(self.database, self.worker_id, [word])

    async def say(self, what: str, made: dict[str, Any], **body: object) -> Answer:
        path = f"/v1/executions/{made['id']}/{what}"
        return await self.client.post(path, {"fence": made["fence"]} | body)

    async def read(self, made: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = (await self.client.get(f"/v1/executions/{made['id']}")).body
        return found


@pytest.fixture
async def desk(database: Database) -> Desk:
    worker_id = WorkerId(uuid4())
    await register(database, worker_id, PROFILE)
    return Desk(client_of(database), database, worker_id)


async def test_it_completes_with_a_result(desk: Desk) -> None:
    made = await desk.handed_over()
    answer = await desk.say("complete", made, result={"rows": 7})
    assert (answer.status, answer.body["status"]) == (200, "SUCCEEDED")
    found = await desk.read(made)
    assert (found["result"], found["worker_id"]) == ({"rows": 7}, str(REMOTE))
    assert found["started_at"] is not None
    assert found["duration_ms"] is not None


async def test_it_tells_how_far_it_is_and_is_told_to_stop(desk: Desk) -> None:
    made = await desk.handed_over()
    answer = await desk.say("progress", made, percent=40, message="half of it")
    assert answer.body == {"execution_id": made["id"], "cancel_requested": False}
    assert (await desk.read(made))["progress"] == {"percent": 40, "message": "half of it"}
    await desk.client.post(f"/v1/executions/{made['id']}/cancel")
    assert (await desk.say("progress", made)).body["cancel_requested"] is True
    answer = await desk.say("complete", made)
    assert answer.body["status"] == "CANCELLED", "what was to be cancelled never succeeds"


async def test_a_failure_is_tried_again_by_the_jobs_policy(desk: Desk) -> None:
    made = await desk.handed_over()
    answer = await desk.say("fail", made, error={"message": "no disk"})
    assert (answer.status, answer.body["status"]) == (200, "RETRYING")
    assert answer.body["error"]["type"] == "HANDLER_ERROR"
    assert answer.body["error"]["message"] == "no disk"


async def test_the_last_failure_goes_to_the_dead_letters(desk: Desk) -> None:
    made = await desk.handed_over(retry_policy={"max_attempts": 1})
    answer = await desk.say("fail", made, error={"message": "late", "type": "timeout"})
    assert (answer.body["status"], answer.body["error"]["type"]) == ("TIMED_OUT", "TIMEOUT")
    assert answer.body["dead_letter_id"] == made["id"]


async def test_a_target_can_say_that_another_try_is_in_vain(desk: Desk) -> None:
    made = await desk.handed_over()
    answer = await desk.say("fail", made, error={"message": "no such user"}, retryable=False)
    assert answer.body["status"] == "FAILED"
    reason = sql("select reason from foliot.dead_letters where id = $1")
    found = await desk.database.fetch_value(reason, answer.body["execution_id"])
    assert found == "NON_RETRYABLE"


async def test_failures_that_come_too_fast_are_poison(desk: Desk) -> None:
    made = await desk.handed_over(retry_policy={"poison_window_seconds": 60})
    copy = sql(
        "insert into foliot.attempts select a.* from foliot.executions e, generate_series(5, 6) n"
        " cross join lateral foliot.as_attempt(e, 'FAILED', false,"
        "   statement_timestamp() - n * interval '1 s', null, null, false, null, null) a"
    )
    await desk.database.execute(copy)
    answer = await desk.say("fail", made, error={"message": "again"})
    assert answer.body["status"] == "FAILED"


@pytest.mark.parametrize("what", ["progress", "complete", "fail"])
async def test_a_stale_fence_is_superseded(desk: Desk, what: str) -> None:
    body: dict[str, object] = {"error": {"message": "x"}} if what == "fail" else {}
    made = await desk.handed_over()
    for fence in (made["fence"] + 1, 2_000_000_000):
        answer = await desk.say(what, made | {"fence": fence}, **body)
        assert answer.code == (409, "SUPERSEDED")
    assert (await desk.read(made))["status"] == "RUNNING"
    await desk.say("complete", made)
    answer = await desk.say(what, made, **body)
    assert answer.code == (409, "EXECUTION_FINISHED")
    assert "SUCCEEDED" in answer.error["message"]
    assert (await desk.say(what, made | {"fence": 9}, **body)).code == (409, "SUPERSEDED")


@pytest.mark.parametrize("what", ["progress", "complete", "fail"])
async def test_an_unknown_execution_and_anothers_are_the_same(desk: Desk, what: str) -> None:
    body: dict[str, object] = {"error": {"message": "x"}} if what == "fail" else {}
    made = await desk.handed_over()
    stranger = await make_tenant(desk.database)
    path, told = f"/v1/executions/{made['id']}/{what}", {"fence": made["fence"], **body}
    answer = await desk.client.post(path, told, x_tenant_id=str(stranger))
    unknown = await desk.client.post(path.replace(made["id"], str(uuid4())), told)
    assert answer.code == unknown.code == (404, "EXECUTION_NOT_FOUND")
    assert (await desk.read(made))["status"] == "RUNNING"


async def test_who_speaks_before_the_worker_has_written_is_heard(desk: Desk) -> None:
    """And what the worker writes afterwards changes nothing."""
    made = await desk.claimed()
    assert (await desk.say("progress", made, percent=1)).status == 200
    assert (await desk.say("complete", made, result=1)).body["status"] == "SUCCEEDED"
    word = HandOver(ExecutionId(made["id"]), made["fence"])
    assert not await hand_over(desk.database, desk.worker_id, [word])


async def test_who_speaks_just_when_it_changes_hands_is_heard(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await desk.claimed()
    reads = 0

    async def read_and_hand_over(*arguments: Any) -> HeldExecution | None:  # noqa: ANN401
        nonlocal reads
        reads += 1
        held = await read_held(*arguments)
        if reads == 1:
            await desk.hand_over(made)
        return held

    monkeypatch.setattr("foliot.api.reporting.read_held", read_and_hand_over)
    assert (await desk.say("complete", made)).body["status"] == "SUCCEEDED"
    assert reads == 2


async def test_progress_that_comes_after_the_end_is_told_so(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await desk.handed_over()

    async def write_late(*arguments: Any) -> int:  # noqa: ANN401
        await desk.say("complete", made)
        return await write_progress(*arguments)

    monkeypatch.setattr("foliot.api.reporting.write_progress", write_late)
    assert (await desk.say("progress", made)).code == (409, "EXECUTION_FINISHED")


async def test_what_runs_in_a_worker_is_the_workers_to_end(desk: Desk) -> None:
    made = await desk.claimed(target={"type": "HANDLER", "name": "work"})
    answer = await desk.say("complete", made)
    assert answer.code == (409, "SUPERSEDED")
    assert "worker" in answer.error["message"]
    assert (await desk.read(made))["status"] == "RUNNING"


async def test_what_waits_cannot_be_completed(desk: Desk) -> None:
    made = await desk.handed_over()
    await desk.say("fail", made, error={"message": "x"})
    assert (await desk.say("complete", made)).code == (409, "SUPERSEDED")
    assert (await desk.read(made))["status"] == "RETRYING"


async def test_a_report_that_is_sent_twice_is_answered_twice(desk: Desk) -> None:
    made = await desk.handed_over()
    key = {"idempotency_key": "once"}
    first = await desk.say("complete", made, result=1, **key)
    again = await desk.say("complete", made, result=1, **key)
    assert (first.status, first.body) == (again.status, again.body)
    assert again.headers["idempotency-replayed"] == "true"


TOLD: dict[str, dict[str, object]] = {
    "complete": {"result": {"rows": [1, 2.5]}},
    "fail": {"error": {"message": "no disk"}},
    "fail in vain": {"error": {"message": "no user", "type": "HTTP_ERROR"}, "retryable": False},
}
LOSE = sql(
    "update foliot.idempotency_keys set answer = null, abandoned = true where route like 'POST %'"
)


@pytest.mark.parametrize("cancelled", [False, True])
@pytest.mark.parametrize("told", TOLD)
async def test_a_report_whose_answer_was_lost_is_answered_with_what_it_did(
    desk: Desk, told: str, cancelled: bool
) -> None:
    made = await desk.handed_over()
    if cancelled:
        await desk.client.post(f"/v1/executions/{made['id']}/cancel")
    what, body = told.split(maxsplit=1)[0], TOLD[told] | {"idempotency_key": "k"}
    first = await desk.say(what, made, **body)
    assert first.status == 200, first.body
    for _ in range(2):
        await desk.database.execute(LOSE)
        again = await desk.say(what, made, **body)
        assert (again.status, again.body) == (200, first.body)


async def test_a_failure_that_was_told_is_known_again_when_the_next_attempt_runs(
    desk: Desk,
) -> None:
    made = await desk.handed_over()
    body = TOLD["fail"] | {"idempotency_key": "k"}
    await desk.say("fail", made, **body)
    await desk.database.execute(LOSE)
    claimed = "update foliot.executions set status = 'QUEUED', rank = 1, queued_at = available_at"
    await desk.database.execute(sql(claimed))
    lanes = (await list_servable(desk.database, PROFILE))["default"]
    (taken,) = await claim(desk.database, ClaimRequest(desk.worker_id, "default", lanes, 1))
    assert taken.fence > made["fence"]
    again = await desk.say("fail", made, **body)
    assert (again.status, again.body["status"]) == (200, "RUNNING")


@pytest.mark.parametrize(("what", "other"), [("complete", "fail"), ("fail", "complete")])
async def test_an_end_that_another_told_is_no_answer_to_a_report(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, what: str, other: str
) -> None:
    """The first copy of it changed nothing: the database was away."""
    made = await desk.handed_over(retry_policy={"max_attempts": 1})
    body = TOLD[what] | {"idempotency_key": "k"}
    with monkeypatch.context() as outage:
        outage.setattr("foliot.api.reporting.read_held", lose_the_database)
        lost = await desk.say(what, made, **body)
    assert "nothing was changed" in lost.error["message"]
    assert (await desk.say(other, made, **TOLD[other])).status == 200
    for _ in range(2):
        assert (await desk.say(what, made, **body)).code == (409, "EXECUTION_FINISHED")


@pytest.mark.parametrize("what", ["complete", "fail"])
async def test_an_end_from_before_the_report_is_no_answer_to_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    made = await desk.handed_over(retry_policy={"max_attempts": 1})
    await desk.say(what, made, **TOLD[what])
    body = TOLD[what] | {"idempotency_key": "k"}
    with monkeypatch.context() as outage:
        outage.setattr("foliot.api.reporting.read_held", lose_the_database)
        await desk.say(what, made, **body)
    assert (await desk.say(what, made, **body)).code == (409, "EXECUTION_FINISHED")


@pytest.mark.parametrize("what", ["complete", "fail"])
async def test_a_report_that_lands_while_a_copy_of_it_is_at_work_is_the_answer_to_both(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """The first was lost on its way, and comes to the database after the second has looked."""
    made = await desk.handed_over()
    body = TOLD[what] | {"idempotency_key": "k"}
    with monkeypatch.context() as outage:
        outage.setattr("foliot.api.reporting.read_held", lose_the_database)
        await desk.say(what, made, **body)
    landed: list[Answer] = []

    async def read_and_land(*arguments: Any) -> HeldExecution | None:  # noqa: ANN401
        monkeypatch.undo()
        landed.append(await desk.say(what, made, **TOLD[what]))
        return await read_held(*arguments)

    monkeypatch.setattr("foliot.api.reporting.read_held", read_and_land)
    again = await desk.say(what, made, **body)
    assert (again.status, [again.body]) == (200, [each.body for each in landed])


@pytest.mark.parametrize("told", TOLD)
async def test_nobody_is_told_that_nothing_was_changed_when_an_end_was_written(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, told: str
) -> None:
    made = await desk.handed_over()
    what, body = told.split(maxsplit=1)[0], TOLD[told] | {"idempotency_key": "k"}
    with monkeypatch.context() as outage:
        outage.setattr("foliot.api.routes.reports.read_executions", lose_the_database)
        lost = await desk.say(what, made, **body)
    assert lost.code == (503, "SCHEDULER_UNAVAILABLE")
    assert "was made" in lost.error["message"]
    again = await desk.say(what, made, **body)
    assert (again.status, again.body) == (200, await desk.read(made))


async def lose_the_database(*_: object) -> None:
    raise DatabaseUnreachable("postgresql://a", "gone")


@pytest.mark.parametrize(
    ("what", "body", "field"),
    [
        ("complete", {"fence": 0}, "fence"),
        ("complete", {"fence": "1"}, "fence"),
        ("complete", {"fence": 2**40}, "fence"),
        ("complete", {"resultt": 1}, "resultt"),
        ("progress", {"percent": 101}, "percent"),
        ("progress", {"message": "x" * 1001}, "message"),
        ("fail", {}, "error"),
        ("fail", {"error": {"message": "x", "type": "WORKER_LOST"}}, "error.type"),
        ("fail", {"error": {"message": "x", "type": "nonsense"}}, "error.type"),
        ("fail", {"error": {"message": "a\0b"}}, "error.message"),
    ],
)
async def test_bad_input_is_refused_by_name(
    desk: Desk, what: str, body: dict[str, object], field: str
) -> None:
    made = await desk.handed_over()
    answer = await desk.say(what, made, **body)
    assert answer.code == (400, "VALIDATION_ERROR")
    assert answer.error["details"][0]["field"] == field


async def test_a_result_that_cannot_be_kept_does_not_keep_the_end_from_landing(
    desk: Desk,
) -> None:
    made = await desk.handed_over()
    answer = await desk.say("complete", made, result="a\0b")
    assert answer.body["status"] == "SUCCEEDED"
    assert answer.body["result_truncated"] is True
