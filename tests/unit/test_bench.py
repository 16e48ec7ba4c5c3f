"""What the benchmarks say of their figures, and that an item leaves nothing behind. No figure is
judged here: those belong to a quiet machine."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench import processes
from bench.__main__ import ITEMS, figures_of, table
from bench.aims import AIMS, Aim, find, judge
from foliot.testing.commands import is_alive

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("figures", "good"),
    [
        ({"per_s": 14_000}, True),
        ({"per_s": 13_999}, False),
        ({"per_s": 9_000, "ratio": 0.9}, True),
        ({"per_s": 9_000, "ratio": 0.89}, False),
        ({"per_s": None, "ratio": None}, False),
        ({}, False),
    ],
)
def test_a_slower_machine_is_measured_by_the_bare_pipeline(
    figures: dict[str, float], good: bool
) -> None:
    assert Aim("per_s", "", least=14_000, instead=("ratio", 0.9)).holds(figures) is good


@pytest.mark.parametrize(("reached", "good"), [(0, True), (1, False), (None, False)])
def test_what_was_not_measured_is_not_reached(reached: int | None, good: bool) -> None:
    assert Aim("early", "", most=0).holds({"early": reached}) is good


def test_a_figure_without_a_bound_is_shown_and_not_judged() -> None:
    verdicts = judge("drain", {"per_s": 1.0, "ratio_graphile": 2.0, "ratio_pgqueuer": 3.0})
    assert all(verdict.good for verdict in verdicts)
    assert [str(verdict) for verdict in verdicts][-1] == "beside River: - (wanted -)"


def test_a_figure_is_found_by_the_way_to_it() -> None:
    assert find({"workers": {"4": {"per_s": 7}}}, "workers.4.per_s") == 7
    assert find({"workers": 4}, "workers.4.per_s") is None
    assert find({"per_s": "many"}, "per_s") is None


def test_something_is_wanted_of_every_item() -> None:
    assert set(ITEMS) <= set(AIMS)


@pytest.mark.parametrize("line", ["", "Traceback", "[1, 2]", "{'per_s': 1}", "3"])
def test_a_last_line_without_figures_is_none(line: str) -> None:
    assert figures_of(line) is None


def test_the_table_shows_what_was_wanted_beside_what_was_reached() -> None:
    lines = list(
        table(
            {
                "machine": {"cores": 2},
                "trigger": {"ms_p50": 14.0, "ms_p99": 99.5},
                "herd": {"failed": "exit status 1: oh"},
            }
        )
    )
    assert [line.split()[-1] for line in lines[1:3]] == ["14", "BAD"]
    assert "<= 60" in lines[2]
    assert lines[3] == "herd       could not be measured: exit status 1: oh"
    assert len(lines) == 4


def test_a_family_is_weighed_with_all_its_members(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One has two children, by two of its threads; one of them has a child, one has just ended."""
    for pid, threads in {1: {1: "2", 9: "3"}, 2: {2: "4 "}, 4: {4: ""}}.items():
        for thread, children in threads.items():
            (tmp_path / f"{pid}/task/{thread}").mkdir(parents=True)
            (tmp_path / f"{pid}/task/{thread}/children").write_text(children)
        (tmp_path / f"{pid}/smaps_rollup").write_text(f"Rss: 9 kB\nPss: {1000 * pid} kB\n")
        ticks = os.sysconf("SC_CLK_TCK")
        after_name = " ".join(["S", *["0"] * 10, str(ticks), str(ticks * pid)])
        (tmp_path / f"{pid}/stat").write_text(f"{pid} (a name) of) {after_name}")
    monkeypatch.setattr(processes, "PROC", tmp_path)
    assert sorted(processes.family(1)) == [1, 2, 3, 4]
    assert processes.family_mb(1) == 7.168
    assert processes.family_cpu_seconds(1) == 10


# Its own process: whoever measures ends every stray child that it has.
MEASURE = """
import json
from bench import processes
from bench.__main__ import Item, measure
from foliot.runtime.family import adopt_orphans
adopt_orphans()
print(json.dumps(measure(Item(("an_item",), limit_seconds=%s), [])))
"""


def measured(folder: Path, body: str, limit_seconds: float = 30.0) -> dict[str, object]:
    """What is said of an item with this body, which must be ended afterwards."""
    (folder / "an_item.py").write_text(body, encoding="utf-8")
    path = os.pathsep.join([str(folder), str(ROOT)])
    run = subprocess.run(
        [sys.executable, "-c", MEASURE % limit_seconds],
        env=os.environ | {"PYTHONPATH": path},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, object] = json.loads(run.stdout.splitlines()[-1])
    return found


def test_an_item_that_fails_says_so_and_leaves_nothing_behind(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    body = f"""
import subprocess, sys
from pathlib import Path
child = subprocess.Popen(["sleep", "300"], start_new_session=True)
Path({str(pid_file)!r}).write_text(str(child.pid))
print("no figures")
sys.exit(3)
"""
    assert measured(tmp_path, body) == {"failed": "exit status 3: no figures"}
    assert not is_alive(int(pid_file.read_text()))


def test_an_item_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    found = measured(tmp_path, "import time; time.sleep(60)", limit_seconds=0.5)
    assert found == {"failed": "exit status -15: "}


def test_an_item_that_is_told_to_stop_cleans_up_first() -> None:
    body = """
import signal
from bench.telling import run, say
def main():
    try:
        say("at work")
        signal.pause()
    except KeyboardInterrupt:
        say("cleaned up")
        return 4
run(main)
"""
    command = [sys.executable, "-c", body]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as item:
        assert item.stdout is not None
        assert item.stdout.readline() == "at work\n"
        item.terminate()
        assert item.communicate()[0] == "cleaned up\n"
    assert item.returncode == 4


def test_figures_count_even_if_they_fall_short(tmp_path: Path) -> None:
    body = """
import sys
print("slow today")
print('{"per_s": 1}')
sys.exit(1)
"""
    assert measured(tmp_path, body) == {"per_s": 1}
