import re
import shutil
import subprocess
import sys
from enum import StrEnum
from pathlib import Path

import pytest

from foliot.core.states import DagRunState, ExecutionState, JobState, WorkerState

DOCS = Path(__file__).parents[2] / "docs"
STATES = [ExecutionState, JobState, WorkerState, DagRunState]


def generate(docs: Path, *options: str) -> int:
    script = docs / "generate_states.py"
    return subprocess.run([sys.executable, str(script), *options], check=False).returncode


@pytest.fixture
def copied_docs(tmp_path: Path) -> Path:
    (tmp_path / "reference").mkdir()
    for name in ("generate_states.py", "reference/states.md"):
        shutil.copy(DOCS / name, tmp_path / name)
    return tmp_path


def test_the_diagrams_show_the_tables_as_they_are() -> None:
    assert generate(DOCS, "--check") == 0, "run .venv/bin/python docs/generate_states.py"


def test_a_diagram_that_was_edited_by_hand_is_noticed_and_mended(copied_docs: Path) -> None:
    page = copied_docs / "reference" / "states.md"
    right = page.read_text(encoding="utf-8")
    page.write_text(right.replace("RUNNING --> QUEUED: LOSE", ""), encoding="utf-8")
    assert generate(copied_docs, "--check") == 1
    assert generate(copied_docs) == 0
    assert page.read_text(encoding="utf-8") == right


@pytest.mark.parametrize("states", STATES)
def test_every_state_has_one_line_of_meaning(states: type[StrEnum]) -> None:
    headings = {ExecutionState: "Execution", JobState: "Job", WorkerState: "Worker"}
    title = headings.get(states, "DAG run")
    page = (DOCS / "reference" / "states.md").read_text(encoding="utf-8")
    section = page.split(f"\n## {title}\n")[1].split("\n## ")[0]
    assert re.findall(r"^- `(\w+)`: \w.+\.$", section, flags=re.MULTILINE) == list(states)
