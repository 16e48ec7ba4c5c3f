"""Handlers that do harm, through the database and back: each hurts itself, in words that help, and
whoever worked beside it succeeds."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from foliot.testing.commands import eventually
from foliot.testing.database import DatabaseFactory, sql
from foliot.testing.engine import Engine

ZOO: Final = Path(__file__).parent / "zoo"
MODULES: Final = [ZOO / name for name in ("noting.py", "poison.py", "greedy.py")]
BRIEFLY: Final = {"timeout_seconds": 1, "cancel_grace_seconds": 0.5}
REASONS: Final = sql("select id, reason from foliot.dead_letters")
UNSPEAKABLE: Final = "Unspeakable: (its text cannot be read: reading it raises ValueError)"

# By handler and payload: how it ends, the type and the text of its error, why it is given up.
ENDS: Final[dict[tuple[str, str], tuple[str, str, str, str]]] = {
    (handler, poison): end
    for handler in ("take", "take_on_loop")
    for poison, end in {
        "exit_at_once": ("FAILED", "EXIT_CODE", "its process exited with status 3", "POISON"),
        "segfault": ("FAILED", "EXIT_CODE", "its process was ended by SIGSEGV", "POISON"),
        "kill_itself": ("FAILED", "EXIT_CODE", "its process was ended by SIGKILL", "POISON"),
        "raise_unspeakable": ("FAILED", "HANDLER_ERROR", UNSPEAKABLE, "EXHAUSTED"),
        "exit_politely": ("FAILED", "HANDLER_ERROR", "SystemExit: enough", "EXHAUSTED"),
        "exhaust": ("FAILED", "HANDLER_ERROR", "MemoryError", "EXHAUSTED"),
    }.items()
}
ENDLESS: Final = ("spin", "spin_on_loop", "fork_and_spin")
MARKED: Final = {
    "nul": "has a NUL character",
    "surrogate": "has half of a surrogate pair",
    "not a number": "nan is not JSON",
    "huge": "larger than",
}


class Zoo:
    """Everything at once in one worker, and the ids of what runs."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.visitor = visitor = engine.visitor
        retry = {"initial_delay_seconds": 0.05, "jitter": 0}
        once = {"max_attempts": 1}
        self.neighbours = [
            visitor.enqueue(visitor.make_job(name, retry_policy=once), {"seconds": 4})
            for name in ("work", "work_apart")
            for _ in range(3)
        ]
        engine.until_begun(*self.neighbours)
        jobs = {
            name: visitor.make_job(name, retry_policy=retry) for name in ("take", "take_on_loop")
        }
        self.poisons = {
            (name, poison): visitor.enqueue(jobs[name], {"poison": poison}) for name, poison in ENDS
        }
        self.endless = {
            name: visitor.enqueue(visitor.make_job(name, retry_policy=once, **BRIEFLY))
            for name in ENDLESS
        }
        give = visitor.make_job("give")
        self.gifts = {what: visitor.enqueue(give, {"what": what}) for what in [*MARKED, "a set"]}
        self.pouring = visitor.enqueue(visitor.make_job("pour"), {"megabytes": 1000})

    def end_of(self, execution_id: str) -> dict[str, Any]:
        return self.visitor.until(execution_id, "SUCCEEDED", "FAILED", "TIMED_OUT", "CANCELLED")

    def reason(self, execution_id: str) -> str | None:
        """Why it is among the dead letters, if it is."""
        return next(
            (row["reason"] for row in self.engine.ask(REASONS) if str(row["id"]) == execution_id),
            None,
        )


@pytest.fixture(scope="module")
def zoo(server: DatabaseFactory, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zoo]:
    url = asyncio.run(server.create())
    engine = Engine(url, tmp_path_factory.mktemp("zoo"), *MODULES)
    with ExitStack() as stack:
        stack.enter_context(engine.api())
        stack.enter_context(engine.scheduler())
        worker = stack.enter_context(engine.worker("--concurrency", "50"))
        yield Zoo(engine)
        assert "Traceback" not in worker.output, worker.output


@pytest.mark.parametrize(("handler", "poison"), ENDS)
def test_poison_ends_among_the_dead_letters(zoo: Zoo, handler: str, poison: str) -> None:
    status, kind, message, reason = ENDS[handler, poison]
    execution = zoo.poisons[handler, poison]
    end = zoo.end_of(execution)
    assert (end["status"], end["error"]["type"]) == (status, kind)
    assert end["error"]["message"].startswith(message)
    assert end["dead_letter_id"] == execution
    assert zoo.reason(execution) == reason
    assert 3 <= len(end["attempts"]) <= 5


@pytest.mark.parametrize("handler", ENDLESS)
def test_what_does_not_end_is_ended(zoo: Zoo, handler: str) -> None:
    end = zoo.end_of(zoo.endless[handler])
    assert (end["status"], end["error"]["type"]) == ("TIMED_OUT", "TIMEOUT")
    assert end["error"]["message"] == "it was not done after 1 s"
    assert 0 < end["duration_ms"] < 2500


@pytest.mark.parametrize("what", MARKED)
def test_a_result_that_cannot_be_kept_is_marked_and_changes_no_success(zoo: Zoo, what: str) -> None:
    end = zoo.end_of(zoo.gifts[what])
    assert end["status"] == "SUCCEEDED"
    assert end["result"]["reason"].startswith(MARKED[what])
    assert end["result_truncated"]
    assert len(str(end["result"])) < 4000


def test_a_result_that_is_no_json_names_the_place(zoo: Zoo) -> None:
    end = zoo.end_of(zoo.gifts["a set"])
    assert end["status"] == "FAILED"
    assert end["error"]["message"].startswith("result.deep[1] is a set, which is not JSON")


def test_a_gigabyte_of_output_is_cut(zoo: Zoo) -> None:
    assert zoo.end_of(zoo.pouring)["status"] == "SUCCEEDED"
    said = eventually(lambda: zoo.visitor.said(zoo.pouring) or None, what="its output")
    assert said[-1] == "the end"
    assert sum(map(len, said)) < 20_000


def test_neighbours_succeed_without_an_attempt_to_spare(zoo: Zoo) -> None:
    for neighbour in zoo.neighbours:
        assert zoo.end_of(neighbour)["status"] == "SUCCEEDED"


def test_the_worker_is_as_good_as_before(zoo: Zoo) -> None:
    for execution in (*zoo.poisons.values(), *zoo.endless.values()):
        zoo.end_of(execution)
    for name in ("work", "work_apart"):
        job = zoo.visitor.make_job(name)
        for execution in [zoo.visitor.enqueue(job) for _ in range(10)]:
            end = zoo.end_of(execution)
            assert (end["status"], end["fence"]) == ("SUCCEEDED", 1)
