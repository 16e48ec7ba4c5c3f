"""The handlers and clients of a chaos run, with nobody to harm them: each does what its table says,
and what clients ask for is what the API takes."""

import asyncio
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from chaos.facts import Effect, Exchange
from chaos.record import SINK_FILE, read_effects
from chaos.workload import Address, calm, plan_jobs, run, set_up
from chaos.workload.calling import Line
from chaos.workload.clients import Client
from chaos.workload.running import MORE, OTHER
from foliot.testing.database import DatabaseFactory
from foliot.testing.engine import Engine

ROOT: Final = Path(__file__).parents[2]
HANDLERS: Final = ROOT / "chaos" / "handlers.py"
SECONDS: Final = 3.0
AROUND: Final = {"FOLIOT_CALLBACK_ALLOW": "loopback"}
SOON: Final = {"max_attempts": 3, "max_crashes": 1, "initial_delay_seconds": 0.05, "jitter": 0}
ONCE: Final = SOON | {"max_attempts": 1}
BRIEFLY: Final = {"timeout_seconds": 0.5, "cancel_grace_seconds": 0.3}

# By handler and payload: how it ends, and what its attempts tell in all.
ENDS: Final[dict[str, tuple[dict[str, Any], dict[str, Any], str, list[str]]]] = {
    "quick": ({"seconds": 0.1}, {}, "SUCCEEDED", ["begun", "done"]),
    "slow": ({"seconds": 0.1}, {}, "SUCCEEDED", ["begun", "done"]),
    "apart": ({"seconds": 0.1}, {}, "SUCCEEDED", ["begun", "done"]),
    "stumble": ({"failures": 1}, {}, "SUCCEEDED", ["begun", "failing", "begun", "done"]),
    "hang": ({}, BRIEFLY | {"retry_policy": ONCE}, "TIMED_OUT", ["begun", "cancelled"]),
    "deaf": ({}, BRIEFLY | {"retry_policy": ONCE}, "TIMED_OUT", ["begun"]),
    "poison": ({"way": "exit"}, {}, "FAILED", ["begun", "poison"]),
    "poison_shared": ({"way": "segfault"}, {}, "FAILED", ["begun", "poison"]),
    "snooze": ({"snoozes": 1, "seconds": 0.1}, {}, "SUCCEEDED", ["begun", "snoozed"]),
    "unstorable": ({"what": "nul"}, {}, "SUCCEEDED", ["begun", "done"]),
}
CHANGES: Final = {"edit", "pause", "resume", "delete", "pause queue", "resume queue"}
ACTIONS: Final = CHANGES | {"create", "enqueue", "bulk", "trigger", "cancel", "read", "replay"}
# What may be refused, for the client asked for it or came too late. All else is taken.
REFUSALS: Final = {
    ("enqueue", 409),  # the same one is at work already
    ("enqueue", 422),
    ("edit", 409),
    ("cancel", 409),
    ("pause", 400),
    ("resume", 400),
    ("delete", 404),
}


@contextmanager
def a_sink(folder: Path) -> Iterator[str]:
    """Where it is called over HTTP."""
    command = [sys.executable, "-m", "chaos.sink", str(folder / "sink"), str(folder / SINK_FILE)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, **pipes) as process:  # type: ignore[call-overload]
        word, port = process.stdout.readline().split()
        assert word == b"listening"
        yield f"http://127.0.0.1:{int(port)}"
        process.stdin.close()


@pytest.fixture(scope="module")
def engine(server: DatabaseFactory, folder: Path, target: str) -> Iterator[Engine]:
    """One for all: whoever waits for everything to be over comes last. The sink is there before."""
    assert target
    engine = Engine(asyncio.run(server.create()), folder, HANDLERS)
    with ExitStack() as stack:
        stack.enter_context(engine.api(**AROUND))
        stack.enter_context(engine.scheduler())
        worker = engine.worker("--queues", "*", **AROUND, CHAOS_SINK=str(folder / "sink"))
        running = stack.enter_context(worker)
        yield engine
        assert "Traceback" not in running.output, running.output


@pytest.fixture(scope="module")
def target(folder: Path) -> Iterator[str]:
    with a_sink(folder) as url:
        yield url


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="foliot-chaos-", dir="/tmp") as folder:
        yield Path(folder)


def told(folder: Path) -> dict[str, list[Effect]]:
    found = defaultdict(list)
    for effect in read_effects(folder):
        found[str(effect.execution_id)].append(effect)
    return found


def test_each_handler_does_what_its_name_says(engine: Engine, folder: Path) -> None:
    ids: dict[str, str] = {}
    ends: dict[str, dict[str, Any]] = {}
    # Whoever ends the process that it shares has no neighbours.
    for handlers in (ENDS.keys() - {"poison_shared"}, {"poison_shared"}):
        for handler in handlers:
            payload, fields, _, _ = ENDS[handler]
            job = engine.visitor.make_job(handler, **{"retry_policy": SOON} | fields)
            ids[handler] = engine.visitor.enqueue(job, payload)
        for handler in handlers:
            ends[handler] = engine.visitor.until(ids[handler], "SUCCEEDED", "FAILED", "TIMED_OUT")
    assert {name: end["status"] for name, end in ends.items()} == {
        name: status for name, (_, _, status, _) in ENDS.items()
    }
    effects = told(folder)
    for handler, (_, _, _, words) in ENDS.items():
        mine = effects[ids[handler]]
        assert [effect.what for effect in mine][: len(words)] == words
        assert {effect.idempotency_key for effect in mine} == {mine[0].idempotency_key}
    assert ends["unstorable"]["result_truncated"]
    assert [effect.fence for effect in effects[ids["snooze"]]] == [1, 1, 2, 2]
    assert {effect.attempt_number for effect in effects[ids["snooze"]]} == {1}


def test_what_is_cancelled_says_so(engine: Engine, folder: Path) -> None:
    jobs = [engine.visitor.make_job(handler) for handler in ("slow", "apart")]
    ids = [engine.visitor.enqueue(job, {"seconds": 1000}) for job in jobs]
    for execution in ids:
        engine.visitor.until(execution, "RUNNING")
    for execution in ids:
        engine.visitor.call("POST", f"/executions/{execution}/cancel")
    for execution in ids:
        engine.visitor.until(execution, "CANCELLED")
        assert [effect.what for effect in told(folder)[execution]] == ["begun", "cancelled"]


def test_clients_are_answered_and_everything_comes_to_its_end(
    engine: Engine, folder: Path, target: str
) -> None:
    exchanges: list[Exchange] = []
    address = Address(lambda: engine.visitor.url, engine.visitor.key)
    stop = asyncio.Event()

    async def do_everything() -> None:
        known = await set_up(address, plan_jobs(7, 40, target), exchanges.append)
        doomed = engine.visitor.enqueue({"job_id": "asked-doomed-000"}, {"failures": 9})
        await asyncio.to_thread(engine.visitor.until, doomed, "FAILED")
        line = Line(address, exchanges.append, stop)
        client = Client(0, line, known)
        for deed in (*MORE, *OTHER):
            await deed(client)
        await line.close()
        asyncio.get_running_loop().call_later(SECONDS, stop.set)
        await run(address, known, stop, exchanges.append)
        await calm(address, known, exchanges.append)

    asyncio.run(do_everything())
    refused = Counter(
        (one.action, one.status) for one in exchanges if one.status is None or one.status >= 300
    )
    assert refused.keys() <= REFUSALS, refused
    assert {one.action for one in exchanges} >= ACTIONS
    engine.until_over()
    ends = Counter(row["status"] for row in engine.outcomes().values())
    assert ends["SUCCEEDED"] > 100
    called = {one.job for mine in told(folder).values() for one in mine if one.what == "done"}
    assert {"called-000", "called-slow-000", "called-stumbling-000", "gated-000"} <= called
