"""Why is it not running? On the whole engine: what stands in the way is built, told, taken away,
and the execution runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

import pytest

from foliot.testing.commands import eventually
from foliot.testing.database import sql
from foliot.testing.engine import Engine
from foliot.testing.visitor import Body, Visitor

ZOO: Final = Path(__file__).parent / "zoo"
SET_QUOTAS: Final = sql("update foliot.tenants set quotas = $1::text::jsonb")
FIELDS: Final = {"code", "message", "way_out", "until", "details"}


@pytest.fixture
def engine(database_url: str, open_folder: Path) -> Iterator[Engine]:
    engine = Engine(database_url, open_folder, ZOO / "noting.py")
    with engine.api():
        yield engine


@contextmanager
def staffed(engine: Engine, *options: str) -> Iterator[Visitor]:
    """A scheduler and a worker, who is there."""
    with engine.scheduler(), engine.worker(*options) as worker:
        worker.line_with("serves")
        yield engine.visitor


def codes(visitor: Visitor, execution: str) -> list[str]:
    return [each["code"] for each in visitor.explain(execution)["blockers"]]


def end(visitor: Visitor, execution: str) -> None:
    visitor.call("POST", f"/executions/{execution}/cancel")
    visitor.until(execution, "CANCELLED")


def busy(visitor: Visitor, job: Body) -> str:
    """One that runs until it is told to stop."""
    execution = visitor.enqueue(job, {"seconds": 600})
    visitor.until(execution, "RUNNING")
    return execution


def test_what_nobody_lets_go_and_nobody_can_run(engine: Engine) -> None:
    visitor = engine.visitor
    job = visitor.make_job("work", queue="mail", requires=["gpu"], region="eu")
    held = visitor.enqueue(job, delay_seconds=0.05)
    told = visitor.until_told(held, "NOT_RELEASED")
    assert told["message"] == "no scheduler is running to let it go"
    assert told["way_out"] == "start one: foliot server --role scheduler"
    assert codes(visitor, held) == ["NOT_RELEASED", "NO_WORKER"]
    with engine.scheduler():
        told = visitor.until_told(held, "NO_WORKER")
        assert visitor.execution(held)["status"] == "QUEUED"
        assert (told["message"], told["details"]["missing"]) == ("no worker is running", "WORKER")

        def lacks(missing: str, *options: str, modules: tuple[Path, ...]) -> str:
            staff = Engine(engine.url, Path("/nowhere"), *modules)
            with staff.worker(*options) as worker:
                worker.line_with("serves")
                reason: Body = visitor.explain(held)["blockers"][0]
                assert (reason["code"], reason["details"]["missing"]) == ("NO_WORKER", missing)
                return str(reason["message"])

        mail = ("--queues", "mail")
        far = (*mail, "--region", "eu")
        able = (*far, "--labels", "gpu,big")
        noting = (ZOO / "noting.py",)
        assert lacks("QUEUE", modules=noting) == (
            "none of 1 live worker takes from queue mail (they take from default)"
        )
        assert "is in region eu (they are in none)" in lacks("REGION", *mail, modules=noting)
        assert lacks("LABELS", *far, modules=noting).startswith("label gpu missing: none of 1")
        assert lacks("TARGET_TYPE", *able, modules=()).endswith("could take it has handlers")
        assert "handler work is known to none of 1" in lacks(
            "HANDLER", *able, modules=(ZOO / "tame.py",)
        )
        with engine.worker(*able):
            visitor.until(held, "SUCCEEDED")


def test_what_its_time_a_backoff_or_the_one_before_it_holds(engine: Engine) -> None:
    with staffed(engine) as visitor:
        job = visitor.make_job("work")
        early = visitor.enqueue(job, delay_seconds=3)
        visitor.call("POST", f"/jobs/{job['job_id']}/pause")
        whole = visitor.explain(early)
        (told,) = whole["blockers"]
        assert set(told) == FIELDS
        assert (whole["execution_id"], whole["status"], told["code"]) == (
            early,
            "PENDING",
            "NOT_DUE",
        )
        assert whole["summary"].startswith("It is not running: it is due at 20")
        assert told["until"] == visitor.execution(early)["available_at"]
        assert 0 < told["details"]["in_seconds"] <= 3
        assert "its job is paused, which fires nothing new and does not hold" in told["message"]
        visitor.until(early, "SUCCEEDED")

        retry = {"initial_delay_seconds": 3, "max_attempts": 3, "jitter": 0}
        stumbles = visitor.make_job("stumble", retry_policy=retry)
        again = visitor.enqueue(stumbles, {"failures": 1})
        told = visitor.until_told(again, "BACKOFF")
        assert told["message"].startswith("attempt 1 of 3 failed with HANDLER_ERROR: ")
        assert "no answer at attempt 1; the next is due at 20" in told["message"]
        assert told["until"] == visitor.execution(again)["available_at"]
        visitor.until(again, "SUCCEEDED")

        every = {"type": "INTERVAL", "interval_seconds": 1, "overlap_policy": "QUEUE_ALL"}
        crowded = visitor.make_job("work", every, payload={"seconds": 600}, name="crowded")
        first, second = until_held(visitor, crowded)
        told = visitor.until_told(second, "OVERLAP")
        assert told["message"].startswith(
            f"of job crowded only one may be under way: {first} of job crowded is RUNNING since 20"
        )
        (holder,) = told["details"]["under_way"]
        assert (holder["execution_id"], holder["status"]) == (first, "RUNNING")
        visitor.call("POST", f"/jobs/{crowded['job_id']}/pause")
        end(visitor, first)
        visitor.until(second, "RUNNING")
        visitor.call("DELETE", f"/jobs/{crowded['job_id']}")
        end(visitor, second)


def until_held(visitor: Visitor, job: Body) -> tuple[str, str]:
    """The first two of a job, of which the second must wait."""

    def look() -> tuple[str, str] | None:
        runs = sorted(visitor.runs(job), key=lambda run: str(run["scheduled_time"]))
        if [run["status"] for run in runs[:2]] != ["RUNNING", "WAITING"]:
            return None
        return runs[0]["execution_id"], runs[1]["execution_id"]

    return eventually(look, what="one waits for the other")


def test_what_a_full_limit_holds(engine: Engine) -> None:
    with staffed(engine) as visitor:
        job = visitor.make_job("work", name="one", concurrency={"limit": 1})
        first, second = busy(visitor, job), visitor.enqueue(job)
        told = visitor.until_told(second, "CONCURRENCY")
        assert told["message"].startswith("concurrency of job one: 1 of 1 running (")
        assert told["way_out"] == "wait for one to finish, or raise concurrency.limit of the job"
        details = told["details"]
        assert (details["scope"], details["used"], details["limit"]) == ("JOB", 1, 1)
        assert [each["execution_id"] for each in details["holders"]] == [first]
        assert visitor.execution(second)["status"] == "WAITING"
        end(visitor, first)
        visitor.until(second, "SUCCEEDED")

        keyed = visitor.make_job("work", concurrency={"key": "k${payload.seconds}", "limit": 1})
        first = busy(visitor, keyed)
        second = visitor.enqueue(keyed, {"seconds": 600})
        told = visitor.until_told(second, "CONCURRENCY")
        assert told["message"].startswith("concurrency key k600: 1 of 1 running")
        end(visitor, first)
        visitor.until(second, "RUNNING")
        end(visitor, second)

        plain = visitor.make_job("work")
        first = busy(visitor, plain)
        visitor.call("PATCH", "/queues/default", {"concurrency_limit": 1})
        end(visitor, first)
        first, second = busy(visitor, plain), visitor.enqueue(plain)
        told = visitor.until_told(second, "CONCURRENCY")
        assert told["message"].startswith(f"queue default: 1 of 1 running ({first} of job")
        assert visitor.execution(second)["status"] == "QUEUED"
        visitor.call("PATCH", "/queues/default", {"concurrency_limit": None})
        visitor.until(second, "SUCCEEDED")
        end(visitor, first)


def test_what_quotas_and_rates_hold(engine: Engine) -> None:
    with staffed(engine) as visitor:
        job = visitor.make_job("work", name="few", rate_limit={"count": 1, "period_seconds": 4})
        visitor.until(visitor.enqueue(job), "SUCCEEDED")
        second = visitor.enqueue(job)
        told = visitor.until_told(second, "RATE")
        assert told["message"].startswith(
            "rate limit of job few: 1 of 1 per 4 s used, next slot at 20"
        )
        assert told["until"] is not None
        assert told["details"]["period_seconds"] == 4
        visitor.until(second, "SUCCEEDED")
        began = datetime.fromisoformat(visitor.execution(second)["started_at"])
        assert began >= datetime.fromisoformat(told["until"])

        plain = visitor.make_job("work")
        first = busy(visitor, plain)
        engine.ask(SET_QUOTAS, '{"max_concurrent": 1}')
        second = until_limited(visitor, plain, "CONCURRENCY")
        told = visitor.until_told(second, "CONCURRENCY")
        assert told["message"].startswith("max concurrent of the tenant: 1 of 1 running")
        assert told["details"]["scope"] == "TENANT"
        end(visitor, first)
        visitor.until(second, "SUCCEEDED")

        engine.ask(SET_QUOTAS, '{"executions_per_minute": 1}')
        second = until_limited(visitor, plain, "RATE")
        told = visitor.until_told(second, "RATE")
        assert told["message"].startswith("rate limit of the tenant: 2 of 2 per 120 s used")
        engine.ask(SET_QUOTAS, "{}")
        visitor.until(second, "SUCCEEDED")


def until_limited(visitor: Visitor, job: Body, code: str) -> str:
    """An execution that is held, once what was set has reached the engine."""

    def look() -> str | None:
        execution = visitor.enqueue(job)

        def ended_or_held() -> str | None:
            found = visitor.explain(execution)["blockers"][0]["code"]
            return found if found in {"FINISHED", code} else None

        told = eventually(ended_or_held, what=f"it is over, or {code} holds it")
        return execution if told == code else None

    return eventually(look, what=f"{code} holds one")


def test_what_a_paused_queue_busy_workers_and_the_line_hold(engine: Engine) -> None:
    with staffed(engine, "--concurrency", "1") as visitor:
        job = visitor.make_job("work", name="slow")
        visitor.call("POST", "/queues/default/pause", {"note": "a look inside"})
        held = visitor.enqueue(job)
        told = visitor.until_told(held, "QUEUE_PAUSED")
        assert told["message"].startswith("queue default has been paused since 20")
        assert told["message"].endswith(": a look inside")
        assert codes(visitor, held) == ["QUEUE_PAUSED"]
        method, path = told["way_out"].split()
        visitor.call(method, path.removeprefix("/v1"))
        visitor.until(held, "SUCCEEDED")

        first = busy(visitor, job)
        second, third = visitor.enqueue(job), visitor.enqueue(job)
        told = visitor.until_told(third, "WORKERS_FULL")
        assert told["message"] == "1 of 1 slots are in use, over one worker that could run it"
        full, line = visitor.explain(third)["blockers"]
        assert (full["code"], line["code"]) == ("WORKERS_FULL", "IN_LINE")
        assert line["message"] == "1 execution is ahead of it in its lane, 1 of its tenant"
        assert codes(visitor, second) == ["WORKERS_FULL"]
        assert codes(visitor, first) == ["RUNNING"]
        end(visitor, first)
        for each in (second, third):
            visitor.until(each, "SUCCEEDED")


def test_what_runs_and_what_is_over(engine: Engine) -> None:
    with staffed(engine, "--name", "anna") as visitor:
        job = visitor.make_job("hang")
        running = visitor.enqueue(job)
        engine.until_begun(running)
        whole = visitor.explain(running)
        (told,) = whole["blockers"]
        assert whole["summary"].startswith("It runs on worker anna since 20")
        assert told["message"].endswith("attempt 1 of 4")
        assert told["details"]["worker"] == "anna"
        end(visitor, running)
        whole = visitor.explain(running)
        assert (whole["status"], codes(visitor, running)) == ("CANCELLED", ["FINISHED"])

        failing = visitor.make_job("stumble", retry_policy={"max_attempts": 1})
        failed = visitor.enqueue(failing, {"failures": 1})
        visitor.until(failed, "FAILED")
        (told,) = visitor.explain(failed)["blockers"]
        assert told["message"].startswith("it is over: FAILED at 20")
        assert told["message"].endswith("no answer at attempt 1; it is among the dead letters")
        assert told["details"]["dead_letter_id"] == failed
        done = visitor.until(visitor.enqueue(failing, {"failures": 0}), "SUCCEEDED")
        (told,) = visitor.explain(done["execution_id"])["blockers"]
        assert told["way_out"] == "there is nothing to wait for"
