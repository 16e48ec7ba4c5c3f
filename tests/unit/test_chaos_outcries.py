"""Which lines of a node's output no node should print."""

from pathlib import Path

import pytest

from chaos.outcries import read_outcries


def found(folder: Path, line: str) -> list[str]:
    (folder / "nodes").mkdir()
    (folder / "nodes" / "worker-1.log").write_text(f"# start 1\n{line}\n", encoding="utf-8")
    return [f"{each['node']}: {each['line']}" for each in read_outcries(folder)]


@pytest.mark.parametrize(
    "line",
    [
        "Traceback (most recent call last):",
        "Task exception was never retrieved",
        "RuntimeWarning: coroutine 'x' was never awaited",
        "x.py:1: ResourceWarning: unclosed <socket>",
        "2026-11-16T06:30:01.250Z ERROR scheduler fire failed",
        "ERROR chaos [7] have outlived the process that started them",
    ],
)
def test_an_outcry_is_found(line: str, tmp_path: Path) -> None:
    assert found(tmp_path, line) == [f"worker-1: {line}"]


@pytest.mark.parametrize(
    "line",
    [
        "2026-11-16T06:30:01.250Z INFO worker stopped",
        "2026-11-16T06:30:01.250Z WARNING scheduler fire failed, trying again: it is unreachable",
    ],
)
def test_an_outage_may_be_told(line: str, tmp_path: Path) -> None:
    assert found(tmp_path, line) == []


def test_of_a_trace_its_end_is_shown(tmp_path: Path) -> None:
    trace = "Traceback (most recent call last):\n  File x\n    y()\nValueError: no\nINFO on"
    (found_one,) = found(tmp_path, trace)
    assert found_one == "worker-1: Traceback (most recent call last): ValueError: no"
