"""An attempt of an HTTP target is one request; what comes back decides how it ended."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any
from uuid import UUID

import pytest

from foliot.core.model import ErrorType
from foliot.testing.callbacks import a_call, http_runner
from foliot.testing.handlers import Heard
from foliot.testing.receiver import Behaviour, Receiver, Talk, receiver
from foliot.worker.http.runner import HttpRunner
from foliot.worker.tasks import Cancelled, Ended, Failed, HandedBack, HandedOver, Held, Succeeded

OK = {"http_status": 200, "body_preview": ""}


def answering(status: str = "200 OK", body: bytes = b"", **headers: str) -> Behaviour:
    async def behave(talk: Talk) -> None:
        await talk.answer(status, body, **headers)

    return behave


async def silent(talk: Talk) -> None:
    """Reads on, until whoever called goes away."""
    await talk.reader.read()


async def call(behave: Behaviour, **changes: Any) -> tuple[Ended, Receiver]:  # noqa: ANN401
    async with receiver(behave) as there, http_runner() as runner:
        return await runner.run(a_call(there.url, **changes), Heard()), there


async def failure(behave: Behaviour, **changes: Any) -> Failed:  # noqa: ANN401
    ended, _ = await call(behave, **changes)
    assert isinstance(ended, Failed)
    return ended


async def test_the_payload_is_the_body_and_the_headers_tell_which_attempt_it_is() -> None:
    execution_id = UUID("0197c1f0-0000-8000-8000-0000000000aa")
    async with receiver() as there, http_runner() as runner:
        task = a_call(
            f"{there.url}/hook?a=1",
            {"to": "me", "ü": 1},
            headers={"X-Colour": "blue"},
            execution_id=execution_id,
            fence=3,
            attempt_number=2,
            timeout_seconds=90.0,
        )
        heard = Heard()
        ended = await runner.run(task, heard)
    preview = '{"ok": true}'
    assert ended == Succeeded({"ok": True}, response={"http_status": 200, "body_preview": preview})
    assert heard.starts == 1
    (request,) = there.requests
    assert (request.method, request.path) == ("POST", "/hook?a=1")
    assert json.loads(request.body) == {"to": "me", "ü": 1}
    told = request.headers
    assert told["content-type"] == "application/json"
    assert told["x-colour"] == "blue"
    assert told["x-idempotency-key"] == "key"
    assert told["x-execution-id"] == str(execution_id)
    assert told["x-job-id"] == str(task.job_id)
    assert (told["x-attempt-number"], told["x-fencing-token"]) == ("2", "3")
    assert told["x-foliot-timeout"] == "90"
    assert told["traceparent"].startswith(f"00-{execution_id.hex}-")
    assert told["accept-encoding"] == "identity"


async def test_a_call_goes_on_with_the_trace_that_it_was_asked_for_in() -> None:
    _, there = await call(answering(), trace_id="ab" * 16)
    version, trace_id, span_id, flags = there.requests[0].headers["traceparent"].split("-")
    assert (version, trace_id, flags) == ("00", "ab" * 16, "01")
    assert int(span_id, 16) > 0


@pytest.mark.parametrize("method", ["GET", "HEAD", "get"])
async def test_a_question_has_no_body(method: str) -> None:
    _, there = await call(answering(), payload={"a": 1}, method=method)
    assert (there.requests[0].method, there.requests[0].body) == (method.upper(), b"")
    assert "content-type" not in there.requests[0].headers


async def test_without_a_payload_there_is_no_body() -> None:
    _, there = await call(answering())
    assert there.requests[0].body == b""


async def test_text_goes_as_it_is_where_the_job_says_what_it_is() -> None:
    headers = {"content-type": "text/csv"}
    _, there = await call(answering(), payload="a,b", headers=headers)
    assert there.requests[0].body == b"a,b"
    assert there.requests[0].headers["content-type"] == "text/csv"
    _, there = await call(answering(), payload="a,b")
    assert there.requests[0].body == b'"a,b"'


async def test_a_signature_is_made_over_the_body_as_it_is_sent() -> None:
    async with (
        receiver() as there,
        http_runner(sign=lambda task, body: {"webhook-id": f"{task.fence}:{len(body)}"}) as runner,
    ):
        await runner.run(a_call(there.url, {"a": 1}, fence=7), Heard())
    (request,) = there.requests
    assert request.headers["webhook-id"] == f"7:{len(request.body)}"


@pytest.mark.parametrize(
    ("content_type", "body", "result"),
    [
        ("application/json; charset=utf-8", b"[1, 2]", [1, 2]),
        ("application/problem+json", b'{"a": null}', {"a": None}),
        ("text/plain", b'{"a": 1}', None),
        ("application/json", b"not json", None),
        ("application/json", b"", None),
        ("application/json", b"[" * 200_000, None),
        ("application/json", b'"\xff"', None),
    ],
)
async def test_json_that_comes_back_is_the_result(
    content_type: str, body: bytes, result: object
) -> None:
    ended, _ = await call(answering("201 Created", body, content_type=content_type))
    assert isinstance(ended, Succeeded)
    assert ended.result == result
    assert ended.response["http_status"] == 201


async def test_a_result_beyond_the_limit_is_marked() -> None:
    body = json.dumps("x" * (256 * 1024)).encode()
    ended, _ = await call(answering(body=body, content_type="application/json"))
    assert isinstance(ended, Succeeded)
    assert ended.is_marker
    assert ended.result["foliot"] == "truncated"
    assert len(ended.response["body_preview"]) == 4096


async def test_a_preview_can_be_kept_whatever_came() -> None:
    ended, _ = await call(answering(body=b"\0\x01\xff\n" * 5000))
    assert isinstance(ended, Succeeded)
    preview = ended.response["body_preview"]
    assert preview == "\ufffd\ufffd\ufffd\n" * 1024
    assert len(json.dumps(preview, ensure_ascii=False).encode()) < 16 * 1024


async def test_what_came_compressed_is_not_unpacked() -> None:
    ended, _ = await call(
        answering(body=b"\x1f\x8b" * 10, content_encoding="gzip", content_type="application/json")
    )
    assert isinstance(ended, Succeeded)
    assert ended.result is None
    assert "gzip" in ended.response["body_preview"]


@pytest.mark.parametrize("status", [301, 307, 400, 404, 408, 429, 500, 503, 599])
async def test_a_status_that_says_no_is_a_failure(status: int) -> None:
    ended = await failure(answering(f"{status} Whatever", b"why", location="/elsewhere"))
    assert ended.failure.type is ErrorType.HTTP_ERROR
    assert ended.failure.http_status == status
    assert ended.response == {"http_status": status, "body_preview": "why"}


async def test_what_a_target_says_about_its_failure_is_in_the_log() -> None:
    async with receiver(answering("500 Oh", b"out of paper")) as there, http_runner() as runner:
        await runner.run(a_call(there.url), heard := Heard())
        (line,) = heard.records
        assert line.level == "ERROR"
        assert "500 Internal Server Error: out of paper" in line.message
        assert 0 <= line.at_seconds < 10
        there.behave = answering()
        await runner.run(a_call(there.url), heard := Heard())
        assert heard.records == []


async def test_a_redirect_is_not_followed() -> None:
    ended, there = await call(answering("302 Found", location="/elsewhere"))
    assert isinstance(ended, Failed)
    assert "redirects are not followed" in ended.failure.message
    assert [request.path for request in there.requests] == ["/"]


async def test_a_target_says_when_to_come_again() -> None:
    ended = await failure(answering("503 Busy", retry_after="120"))
    assert ended.failure.retry_after_seconds == 120


async def test_a_time_of_day_is_meant_by_the_targets_own_clock() -> None:
    there_now = datetime(2001, 1, 1, tzinfo=UTC)
    date = format_datetime(there_now, usegmt=True)
    later = format_datetime(there_now + timedelta(seconds=90), usegmt=True)
    ended = await failure(answering("429 Slow Down", retry_after=later, date=date))
    assert ended.failure.retry_after_seconds == 90
    future = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    ended = await failure(answering("429 Slow Down", retry_after=future))
    assert not ended.failure.retry_after_seconds, "without its clock the time says nothing"
    ended = await failure(answering("429 Slow Down", retry_after=later, date="noon"))
    assert not ended.failure.retry_after_seconds


async def test_a_target_may_take_it_over() -> None:
    ended, _ = await call(answering("202 Accepted", x_foliot_async="true"))
    assert ended == HandedOver()
    ended, _ = await call(answering("202 Accepted"))
    assert isinstance(ended, Succeeded)
    ended, _ = await call(answering("200 OK", x_foliot_async="true"))
    assert isinstance(ended, Succeeded), "202 is part of it"


async def test_calls_to_one_host_share_connections() -> None:
    async with receiver() as there, http_runner() as runner:
        for _ in range(5):
            assert isinstance(await runner.run(a_call(there.url, 1), Heard()), Succeeded)
    assert there.connections == 1


async def test_an_idle_connection_is_closed_before_the_other_side_may_do_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("foliot.worker.http.guard.KEEP_SECONDS", 0.05)
    async with receiver() as there, http_runner() as runner:
        assert isinstance(await runner.run(a_call(there.url), Heard()), Succeeded)
        await there.until_empty()
        assert isinstance(await runner.run(a_call(there.url), Heard()), Succeeded)
    assert there.connections == 2


async def begin(
    runner: HttpRunner,
    there: Receiver,
    **changes: Any,  # noqa: ANN401
) -> tuple[asyncio.Task[Ended], UUID]:
    """A call that has reached the receiver."""
    task = a_call(there.url, **changes)
    running = asyncio.get_running_loop().create_task(runner.run(task, Heard()))
    await there.until(len(there.requests) + 1)
    return running, task.execution_id


async def test_to_cancel_breaks_the_request_off() -> None:
    async with receiver(silent) as there, http_runner() as runner:
        running, execution_id = await begin(runner, there)
        runner.cancel(execution_id, "asked")
        async with asyncio.timeout(2):
            assert await running == Cancelled("asked")
            await there.until_empty()
        runner.cancel(execution_id, "nothing happens")


async def test_what_runs_when_the_worker_leaves_is_handed_back() -> None:
    async with receiver(silent) as there, http_runner() as runner:
        running, _ = await begin(runner, there)
        async with asyncio.timeout(2):
            await runner.close(grace_seconds=0.05)
            assert isinstance(await running, HandedBack)
        assert isinstance(await runner.run(a_call(there.url), Heard()), HandedBack)


async def test_keys_that_do_not_come_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The database stands still; a start deadline would pass meanwhile."""

    async def stand_still(_: UUID) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr("foliot.worker.http.runner.READ_WITHIN_SECONDS", 0.05)
    async with receiver() as there, http_runner() as runner:
        monkeypatch.setattr(runner, "_sign_for", stand_still)
        ended = await runner.run(a_call(there.url), Heard())
    assert ended == HandedBack("what its tenant may call could not be read")
    assert there.requests == []


async def test_what_ends_within_the_grace_ends_well() -> None:
    may_end = asyncio.Event()

    async def patient(talk: Talk) -> None:
        await may_end.wait()
        await talk.answer()

    async with receiver(patient) as there, http_runner() as runner:
        running, _ = await begin(runner, there)
        closing = asyncio.get_running_loop().create_task(runner.close(grace_seconds=5))
        may_end.set()
        async with asyncio.timeout(2):
            await closing
            assert isinstance(await running, Succeeded)


async def test_a_full_host_holds_up_no_other() -> None:
    """Two may be under way and two may wait: the fifth is held at once, the others after a
    second."""
    async with receiver(silent) as slow, receiver() as quick, http_runner(per_host=2) as runner:
        loop = asyncio.get_running_loop()
        for _ in range(2):
            await begin(runner, slow)
        waiting = [loop.create_task(runner.run(a_call(slow.url), Heard())) for _ in range(2)]
        await asyncio.sleep(0)
        at_once = await runner.run(a_call(slow.url), heard := Heard())
        assert isinstance(at_once, Held)
        assert heard.starts == 0
        assert not any(task.done() for task in waiting)
        assert "2 calls to" in at_once.reason
        assert isinstance(await runner.run(a_call(quick.url), Heard()), Succeeded)
        await begin(runner, slow, tenant_id=UUID(int=2))
        async with asyncio.timeout(3):
            for ended in await asyncio.gather(*waiting):
                assert isinstance(ended, Held)
                assert 0 < ended.seconds < 5


async def test_a_place_that_comes_free_goes_to_who_waits() -> None:
    may_end = asyncio.Event()

    async def patient(talk: Talk) -> None:
        await may_end.wait()
        await talk.answer()

    async with receiver(patient) as there, http_runner(per_host=1) as runner:
        await begin(runner, there)
        second = a_call(there.url)
        waiting = asyncio.get_running_loop().create_task(runner.run(second, Heard()))
        await asyncio.sleep(0)
        may_end.set()
        assert isinstance(await waiting, Succeeded)


async def test_one_that_is_cancelled_while_it_waits_for_its_host_leaves_at_once() -> None:
    async with receiver(silent) as there, http_runner(per_host=1) as runner:
        first, first_id = await begin(runner, there)
        second = a_call(there.url)
        waiting = asyncio.get_running_loop().create_task(runner.run(second, Heard()))
        await asyncio.sleep(0.01)
        runner.cancel(second.execution_id, "asked")
        assert await waiting == Cancelled("asked")
        there.behave = answering()
        third = asyncio.get_running_loop().create_task(runner.run(a_call(there.url), Heard()))
        await asyncio.sleep(0.01)
        runner.cancel(first_id, "asked")
        assert await first == Cancelled("asked")
        assert isinstance(await third, Succeeded), "there was room to wait"
