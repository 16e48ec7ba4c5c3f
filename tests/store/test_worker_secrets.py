"""Secrets in a worker: filled in just before an attempt begins, and masked in all that it says."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from foliot.core.model import CommandTarget, ErrorType, Failure, HttpTarget
from foliot.runtime.envelope import Keyring
from foliot.store.database import Database
from foliot.store.secrets import delete_secret, put_secret
from foliot.testing.clock import ManualClock
from foliot.testing.fake_runner import FakeRunner
from foliot.testing.rows import DEFAULT_TENANT, NOW, fresh_id
from foliot.worker.discretion import DiscreetRunner
from foliot.worker.hosts.output import CUT
from foliot.worker.secrets import KNOWN_MAX, KNOWN_SECONDS, SecretReader
from foliot.worker.tasks import (
    Cancelled,
    Crashed,
    Ended,
    Failed,
    HandedBack,
    HandedOver,
    Held,
    LogRecord,
    LogSource,
    Snoozed,
    Succeeded,
    Task,
)

RING = Keyring([("k1", bytes(range(32)))])
VALUE = "s3cret-value-42"
SAID = f"it is {VALUE}"
MASKED = "it is ***"


def task(**changes: Any) -> Task:  # noqa: ANN401 - a value for any field
    whole = Task(
        execution_id=fresh_id(),
        fence=1,
        attempt_number=1,
        max_attempts=4,
        tenant_id=DEFAULT_TENANT,
        job_id=fresh_id(),
        job_name="job",
        handler="work",
        payload={"token": "${secrets.TOKEN}"},
        timeout_seconds=10,
        cancel_grace_seconds=1,
        run_alone=False,
        scheduled_time=NOW,
        idempotency_key="key",
        trigger="MANUAL",
    )
    return replace(whole, **changes)


@dataclass
class Ear:
    """What is reported, and with which payload."""

    heard: list[tuple[Any, ...]] = field(default_factory=list)

    def started(self, task: Task) -> None:
        self.heard.append(("started", task.payload))

    def logged(self, task: Task, records: Sequence[LogRecord]) -> None:
        self.heard.append(("logged", task.payload, *[record.message for record in records]))

    def progressed(self, task: Task, percent: float | None, message: str) -> None:
        self.heard.append(("progressed", task.payload, percent, message))


async def put(database: Database, name: str, value: str) -> None:
    await put_secret(database, RING, (DEFAULT_TENANT, name), value)


@pytest.fixture
async def clock(database: Database) -> ManualClock:
    """With one secret there."""
    await put(database, "TOKEN", VALUE)
    return ManualClock()


@pytest.fixture
def reader(database: Database, clock: ManualClock) -> SecretReader:
    return SecretReader(database, RING, clock)


async def end_of(reader: SecretReader, ended: Ended) -> Ended:
    return await DiscreetRunner(FakeRunner(lambda _: ended), reader).run(task(), Ear())


async def test_every_part_of_a_task_is_filled_in(reader: SecretReader) -> None:
    runner = FakeRunner()
    discreet = DiscreetRunner(runner, reader)
    whole = task(
        payload=["${secrets.TOKEN}", {"a": "$${secrets.TOKEN} x"}],
        http=HttpTarget("https://h/${secrets.TOKEN}", headers={"A": "Bearer ${secrets.TOKEN}"}),
        command=CommandTarget(("run", "${secrets.TOKEN}"), {"T": "${secrets.TOKEN}"}),
    )
    await discreet.run(whole, Ear())
    (run,) = runner.tasks
    assert run.payload == [VALUE, {"a": "${secrets.TOKEN} x"}]
    assert run.http == HttpTarget(f"https://h/{VALUE}", headers={"A": f"Bearer {VALUE}"})
    assert run.command == CommandTarget(("run", VALUE), {"T": VALUE})
    assert replace(run, payload=None, http=None, command=None) == replace(
        whole, payload=None, http=None, command=None
    )


async def test_a_task_that_asks_for_nothing_is_run_as_it_is(reader: SecretReader) -> None:
    runner, ear = FakeRunner(lambda _: Succeeded(SAID)), Ear()
    plain = task(payload={"a": "${HOME}"})
    assert await DiscreetRunner(runner, reader).run(plain, ear) == Succeeded(SAID)
    assert runner.tasks[0] is plain
    assert runner.reporter is ear


async def test_a_payload_that_came_with_a_request_asks_for_no_secret(reader: SecretReader) -> None:
    """Whoever may write into a payload could else read any secret of the tenant."""
    runner = FakeRunner()
    strange = {"comment": "${secrets.TOKEN} $${secrets.TOKEN}"}
    target = HttpTarget("https://x.example/${secrets.TOKEN}")
    asked = task(payload=strange, payload_is_jobs=False, http=target)
    await DiscreetRunner(runner, reader).run(asked, Ear())
    assert runner.tasks[0].payload == strange
    assert runner.tasks[0].http == HttpTarget(f"https://x.example/{VALUE}")


async def test_an_escaped_reference_asks_for_no_secret(reader: SecretReader) -> None:
    runner = FakeRunner()
    await DiscreetRunner(runner, reader).run(task(payload="$${secrets.NONE}"), Ear())
    assert runner.tasks[0].payload == "${secrets.NONE}"


@pytest.mark.parametrize(
    ("ended", "masked"),
    [
        (
            Succeeded({VALUE: [SAID]}, response={"body": SAID}),
            Succeeded({"***": [MASKED]}, response={"body": MASKED}),
        ),
        (
            Succeeded({"preview": f'"{VALUE[:12]}'}, is_marker=True),
            Succeeded({"preview": '"***'}, is_marker=True),
        ),
        (
            Failed(Failure(ErrorType.HTTP_ERROR, SAID, 500, SAID), {"body": SAID}),
            Failed(Failure(ErrorType.HTTP_ERROR, MASKED, 500, MASKED), {"body": MASKED}),
        ),
        (
            Crashed(Failure(ErrorType.EXIT_CODE, SAID), alone=True),
            Crashed(Failure(ErrorType.EXIT_CODE, MASKED), alone=True),
        ),
        (HandedOver(), HandedOver()),
        (HandedBack(SAID), HandedBack(MASKED)),
        (Cancelled(SAID), Cancelled(MASKED)),
        (Held(3, SAID), Held(3, MASKED)),
        (Snoozed(5), Snoozed(5)),
    ],
)
async def test_no_end_holds_the_value(reader: SecretReader, ended: Ended, masked: Ended) -> None:
    assert await end_of(reader, ended) == masked


async def test_no_line_and_no_progress_holds_the_value(reader: SecretReader) -> None:
    ear, runner = Ear(), FakeRunner()
    discreet = DiscreetRunner(runner, reader)
    began = asyncio.Event()

    def begin(_: Task) -> None:
        began.set()

    runner.answer = begin
    running = asyncio.ensure_future(discreet.run(task(), ear))
    await began.wait()
    (begun,) = runner.tasks
    lines = [SAID, f"cut {VALUE[:10]}{CUT}", "plain"]
    records = [LogRecord(0.0, "INFO", LogSource.LOG, line) for line in lines]
    runner.reporter.logged(begun, records)
    runner.reporter.progressed(begun, 50, SAID)
    runner.end(begun.execution_id, Succeeded())
    await running
    before = {"token": "${secrets.TOKEN}"}
    assert ear.heard == [
        ("started", before),
        ("logged", before, MASKED, f"cut ***{CUT}", "plain"),
        ("progressed", before, 50, MASKED),
    ]


async def test_a_defect_of_ours_does_not_tell_it_either(
    reader: SecretReader, caplog: pytest.LogCaptureFixture
) -> None:
    def fall(run: Task) -> Ended:
        raise ValueError(f"cannot use {run.payload}")

    ended = await DiscreetRunner(FakeRunner(fall), reader).run(task(), Ear())
    assert ended == Failed(Failure(ErrorType.WORKER_LOST, "the worker failed: ValueError"))
    assert "ValueError: cannot use {'token': '***'}" in caplog.text
    assert VALUE not in caplog.text


async def test_a_missing_secret_fails_the_attempt_by_its_name(reader: SecretReader) -> None:
    runner = FakeRunner()
    ended = await DiscreetRunner(runner, reader).run(
        task(payload="${secrets.TOKEN} ${secrets.NONE} ${secrets.NOR}"), Ear()
    )
    assert isinstance(ended, Failed)
    assert ended.failure.type is ErrorType.MISSING_SECRET
    assert ended.failure.message == "there is no secret NONE, NOR"
    assert ended.failure.do_not_retry
    assert runner.tasks == []


@pytest.mark.parametrize(
    ("ring", "words"),
    [
        (
            None,
            "the secret TOKEN cannot be opened: this worker has no keys: set FOLIOT_SECRET_KEYS",
        ),
        (Keyring([("k2", bytes(32))]), "the key 'k1', which FOLIOT_SECRET_KEYS does not have"),
        (Keyring([("k1", bytes(32))]), "its seal is broken"),
    ],
)
async def test_a_secret_that_does_not_open_fails_the_attempt(
    database: Database, clock: ManualClock, ring: Keyring | None, words: str
) -> None:
    ended = await DiscreetRunner(FakeRunner(), SecretReader(database, ring, clock)).run(
        task(), Ear()
    )
    assert isinstance(ended, Failed)
    assert ended.failure.type is ErrorType.MISSING_SECRET
    assert words in ended.failure.message
    assert VALUE not in ended.failure.message


async def test_another_tenants_secret_is_not_there(reader: SecretReader) -> None:
    ended = await DiscreetRunner(FakeRunner(), reader).run(task(tenant_id=fresh_id()), Ear())
    assert isinstance(ended, Failed)
    assert ended.failure.message == "there is no secret TOKEN"


async def test_a_payload_that_would_grow_without_measure_is_refused(
    database: Database, reader: SecretReader
) -> None:
    await put(database, "BIG", "x" * 65_536)
    runner = FakeRunner()
    for n in range(5):
        await put(database, f"BIG{n}", "x" * 65_536)
    for payload in (["${secrets.BIG}"] * 5, [f"${{secrets.BIG{n}}}" for n in range(5)]):
        ended = await DiscreetRunner(runner, reader).run(task(payload=payload), Ear())
        assert isinstance(ended, Failed)
        assert ended.failure.type is ErrorType.INVALID_PAYLOAD
    many = "".join(f"${{secrets.S{n}}}" for n in range(101))
    ended = await DiscreetRunner(runner, reader).run(task(payload=many), Ear())
    assert isinstance(ended, Failed)
    assert "100 are allowed" in ended.failure.message
    assert runner.tasks == []


async def test_a_new_value_is_in_use_two_seconds_later(
    database: Database, clock: ManualClock, reader: SecretReader
) -> None:
    runner = FakeRunner()
    discreet = DiscreetRunner(runner, reader)
    await discreet.run(task(), Ear())
    await put(database, "TOKEN", "another value")
    await discreet.run(task(), Ear())
    clock.seconds += KNOWN_SECONDS
    await discreet.run(task(), Ear())
    assert [run.payload["token"] for run in runner.tasks] == [VALUE, VALUE, "another value"]
    await delete_secret(database, DEFAULT_TENANT, "TOKEN")
    clock.seconds += KNOWN_SECONDS
    assert isinstance(await discreet.run(task(), Ear()), Failed)


async def test_many_at_once_ask_the_database_once(
    database: Database, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    fetch = database.fetch

    async def counted(*arguments: Any) -> Any:  # noqa: ANN401 - as it comes
        asked.append(arguments)
        return await fetch(*arguments)

    monkeypatch.setattr(database, "fetch", counted)
    runner = FakeRunner()
    discreet = DiscreetRunner(runner, SecretReader(database, RING, clock))
    await asyncio.gather(*(discreet.run(task(), Ear()) for _ in range(50)))
    assert len(runner.tasks) == 50
    assert len(asked) == 1


async def test_what_is_known_is_bounded(database: Database, reader: SecretReader) -> None:
    for n in range(KNOWN_MAX + 5):
        await put(database, f"S{n}", "value")
        await reader.open(DEFAULT_TENANT, frozenset({f"S{n}"}))
    assert len(reader._known) == KNOWN_MAX


async def test_without_a_database_the_task_is_handed_back(clock: ManualClock) -> None:
    closed = Database("postgresql://nobody@127.0.0.1:1/nothing")
    runner = FakeRunner()
    ended = await DiscreetRunner(runner, SecretReader(closed, RING, clock)).run(task(), Ear())
    assert ended == HandedBack("its secrets cannot be read now: DatabaseUnreachable")
    assert runner.tasks == []


async def test_a_database_that_stands_still_is_not_waited_for(
    reader: SecretReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stand_still(_: Task) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr("foliot.worker.discretion.READ_WITHIN_SECONDS", 0.05)
    monkeypatch.setattr(reader, "prepare", stand_still)
    runner = FakeRunner()
    ended = await DiscreetRunner(runner, reader).run(task(), Ear())
    assert ended == HandedBack("its secrets could not be read in time")
    assert runner.tasks == []


async def test_what_is_cancelled_while_its_secrets_are_read_does_not_begin(
    reader: SecretReader,
) -> None:
    runner, whole = FakeRunner(), task()
    discreet = DiscreetRunner(runner, reader)
    running = asyncio.ensure_future(discreet.run(whole, Ear()))
    await asyncio.sleep(0)
    discreet.cancel(whole.execution_id, "asked to")
    assert await running == Cancelled("asked to")
    assert runner.tasks == []
    assert runner.cancelled == [(whole.execution_id, "asked to")]
    # The next attempt of it is not told of that.
    assert await discreet.run(whole, Ear()) == Succeeded()
