"""The tour as a user takes it: `foliot up examples/tour.py`, and everything is seen over HTTP."""

import importlib.util
import tempfile
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from foliot.testing.commands import eventually, foliot_up
from foliot.testing.visitor import Visitor

TOUR: Final = Path(__file__).parents[2] / "examples" / "tour.py"


class Tour:
    """The visitor, and the jobs by their names."""

    def __init__(self, visitor: Visitor) -> None:
        self.visitor = visitor
        self.jobs = {job["name"]: visitor.call("POST", "/jobs", job) for job in load_tour().JOBS}

    def only_run(self, name: str) -> str:
        """The id of the one execution of a job, once it is there."""
        runs = eventually(lambda: self.visitor.runs(self.jobs[name]) or None, what=f"{name} runs")
        (run,) = runs
        return str(run["execution_id"])


def load_tour() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tour", TOUR)
    assert spec is not None
    assert spec.loader is not None
    tour = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tour)
    return tour


def time_of(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.fixture(scope="module")
def tour() -> Iterator[Tour]:
    """One `foliot up` for all, with the jobs of the tour under way."""
    with tempfile.TemporaryDirectory(prefix="foliot-tour-", dir="/tmp") as folder:
        Path(folder).chmod(0o711)
        data = Path(folder) / "data"
        with foliot_up(data, str(TOUR)) as ready:
            ready.command.line_with("serves")
            yield Tour(Visitor(ready.url, (data / "api-key").read_text().strip()))
            assert "Traceback" not in ready.command.output, ready.command.output


def test_a_cron_runs_every_second(tour: Tour) -> None:
    job = tour.jobs["tick"]

    def five() -> list[dict[str, Any]] | None:
        runs = [run for run in tour.visitor.runs(job) if run["status"] == "SUCCEEDED"]
        return runs if len(runs) >= 5 else None

    runs = eventually(five, what="five ticks")
    instants = [time_of(run["scheduled_time"]) for run in runs]
    assert {later - earlier for later, earlier in pairwise(instants)} == {timedelta(seconds=1)}
    for run, instant in zip(runs, instants, strict=True):
        assert instant <= time_of(run["started_at"]) < instant + timedelta(seconds=1)
        result = tour.visitor.execution(run["execution_id"])["result"]
        assert result == f"tick of {instant:%H:%M:%S}"
    shown = tour.visitor.call("GET", f"/jobs/{job['job_id']}")
    assert shown["stats"]["last_status"] == "SUCCEEDED"
    assert time_of(shown["next_run_at"]) > instants[0]


def test_a_job_that_fails_is_tried_again_until_it_succeeds(tour: Tour) -> None:
    run = tour.visitor.until(tour.only_run("flaky"), "SUCCEEDED")
    assert run["result"] == "done at attempt 3"
    assert run["error"] is None
    told = [(one["attempt_number"], one["status"], one["fence"]) for one in run["attempts"]]
    assert told == [(1, "FAILED", 1), (2, "FAILED", 2), (3, "SUCCEEDED", 3)]
    for number, attempt in enumerate(run["attempts"][:2], 1):
        assert attempt["error"]["type"] == "HANDLER_ERROR"
        assert attempt["error"]["message"] == f"ConnectionError: no answer at attempt {number}"
    waits = [
        (time_of(after["started_at"]) - time_of(before["finished_at"])).total_seconds()
        for before, after in pairwise(run["attempts"])
    ]
    # Half a second and a second, each a quarter more or less, and found by a look.
    assert 0.35 < waits[0] < 2
    assert 0.7 < waits[1] < 3


def test_a_long_job_tells_how_far_it_is_and_what_it_does(tour: Tour) -> None:
    execution_id = tour.only_run("export")
    seen: list[float] = []

    def far() -> bool:
        run = tour.visitor.execution(execution_id)
        if run["status"] == "RUNNING" and run["progress"]:
            assert run["progress"]["message"].endswith("of 5000 rows")
            seen.append(run["progress"]["percent"])
        return bool(run["status"] == "SUCCEEDED")

    eventually(far, what="the export is done")
    assert seen == sorted(seen)
    assert len(set(seen)) >= 4
    run = tour.visitor.execution(execution_id)
    assert run["result"] == {"rows": 5000}
    assert len(run["attempts"]) == 1
    eventually(
        lambda: tour.visitor.said(execution_id) == ["exporting 5000 rows"], what="its log is there"
    )


def test_a_loop_without_an_end_is_killed(tour: Tour) -> None:
    run = tour.visitor.until(tour.only_run("spin"), "TIMED_OUT", "FAILED")
    assert run["status"] == "TIMED_OUT"
    assert run["error"]["type"] == "TIMEOUT"
    assert "3 s" in run["error"]["message"]
    # Three seconds, a second of grace, and a second to see to it.
    assert 3000 <= run["duration_ms"] < 5500
    assert run["dead_letter_id"] == run["execution_id"]
