"""One word per idea, and the project speaks of itself alone."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TRACKED = [
    ROOT / line
    for line in subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
]
TEXTS = [path for path in TRACKED if path.is_file() and path.suffix not in {".png", ".ico"}]
PROSE_AND_CODE = [path for path in TEXTS if path.parts[len(ROOT.parts)] != "requirements"]
CODE = [path for path in TEXTS if path.suffix in {".py", ".sql"} and "tidy" not in path.parts]

# identifier or SQL word -> the word the glossary has for it
SYNONYMS = {
    "dlq": "dead_letter",
    "cron_expr": "cron_expression",
    "cronexpr": "cron_expression",
    "job_run": "execution",
    "run_id": "execution_id",
    "exec_id": "execution_id",
    "fencing_token": "fence",
    "fence_token": "fence",
    "attempt_no": "attempt_number",
    "attempt_num": "attempt_number",
    "scheduled_at": "scheduled_time",
    "scheduled_for": "scheduled_time",
    "fire_time": "instant",
    "reaper": "rescue",
    "reap": "rescue",
    "requeue": "hand_back",
    "deadletter": "dead_letter",
    "workflow": "dag",
    "heart_beat": "heartbeat",
}
# Notes about how the project is being built belong in the commit log.
BUILDING = re.compile(
    r"\b[RIF]\d{1,2}\b(?!\.)|DESIGN(?:\.md)? ?§|REQUIREMENTS\.md|\bAPI\.md\b"
    r"|\bseed documents?\b|shared/(?:seeds|reference|prototype)|\bissue #?\d+\b"
)
UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")
HOSTS = re.compile(
    r"(?:files\.pythonhosted|pypi)\.org|registry\.npmjs|deb\.debian|proxy\.golang|repo1\.maven"
)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def identifiers(path: Path) -> set[str]:
    text = path.read_text()
    if path.suffix == ".sql":
        return set(re.findall(r"[a-z_]+", text.lower()))
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        for attribute in ("id", "attr", "arg", "name"):
            value = getattr(node, attribute, None)
            if isinstance(value, str):
                # A class DeadLetter is the words dead_letter.
                found.add(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", value).lower())
    return found


@pytest.mark.parametrize("path", CODE, ids=name)
def test_one_word_per_idea(path: Path) -> None:
    wrong = {word: SYNONYMS[word] for word in identifiers(path) & SYNONYMS.keys()}
    assert not wrong


@pytest.mark.parametrize("path", PROSE_AND_CODE, ids=name)
def test_the_project_speaks_of_itself(path: Path) -> None:
    if path.name == "test_words.py":
        return
    text = path.read_text()
    assert not BUILDING.findall(text)
    assert not UNFINISHED.findall(text)


@pytest.mark.parametrize("path", TEXTS, ids=name)
def test_no_file_names_a_package_registry(path: Path) -> None:
    if path.name == "test_words.py":
        return
    assert not HOSTS.findall(path.read_text())


def test_every_relative_link_in_the_docs_leads_somewhere() -> None:
    broken = [
        f"{name(path)}: {target}"
        for path in TEXTS
        if path.suffix == ".md"
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text())
        if not (path.parent / target).exists()
    ]
    assert not broken
