"""Whether a broken Foliot is noticed by whom it should be, and for the reason it should be.

A test that fails in its set-up, or for want of time, or with another error than the one it is named
with, has noticed nothing; nor has a run without a verdict, or one whose facts make no sense.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chaos.zoo.copying import ROOT
from chaos.zoo.guard import ASSERTION, Invariant, Named

LIMIT_SECONDS: Final = 600.0
ENDING_SECONDS: Final = 30.0
# As the report prints them, and as pytest does.
VIOLATED: Final = re.compile(r"^(?P<name>[a-z-]+) .*<-- violated$", re.MULTILINE)
WITNESS: Final = re.compile(r"^(?P<name>[a-z-]+): (?P<title>.*)$", re.MULTILINE)
SENSELESS: Final = "it cannot be checked"
KEPT: Final = re.compile(r"^all of it is in (?P<folder>.*/foliot-chaos-[^/\s]+)$", re.MULTILINE)
FAILED: Final = re.compile(r"^FAILED (?P<test>.+?) - (?P<error>.*)$", re.MULTILINE)
ASSERTED: Final = ("assert ", "AssertionError", "Failed: DID NOT RAISE")


class NotInUse(Exception):
    """Something else than the copy is imported: whatever is found says nothing."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a command has printed, and its exit status; without one it took too long."""

    output: str
    status: int | None


@dataclass(frozen=True, slots=True)
class Notice:
    """Whether it was noticed; in a line, what was; and all that was said."""

    caught: bool
    reason: str
    output: str


def watch(catcher: Named | Invariant, sources: Path) -> Notice:
    match catcher:
        case Named(node, error):
            return judge_tests(run_tests(sources, [node]), error)
        case Invariant(name, seed, seconds):
            said = run_chaos(sources, seed, seconds)
            notice = judge_run(said, name)
            if notice.caught:
                forget(said)
            return notice


def judge_tests(said: Said, error: str) -> Notice:
    found = FAILED.search(said.output)
    if said.status != 1 or found is None:
        return Notice(False, "no test has failed", said.output)
    return Notice(error_of(found["error"]) == error, found["error"], said.output)


def error_of(line: str) -> str:
    """Its name, without its module; a raise that did not come is missed by an assertion too."""
    if line.startswith(ASSERTED):
        return ASSERTION
    return line.partition(":")[0].rpartition(".")[2]


def judge_run(said: Said, invariant: str) -> Notice:
    titles = {found["name"]: found["title"] for found in WITNESS.finditer(said.output)}
    title = titles.get(invariant, "nothing was found against it")
    caught = invariant in violated(said) and not title.startswith(SENSELESS)
    return Notice(caught, title, said.output)


def has_verdicts(said: Said) -> bool:
    """Whether the run came to its end: every invariant has a line, whatever was found."""
    return "invariant                 checked" in said.output


def violated(said: Said) -> list[str]:
    return VIOLATED.findall(said.output)


def run_tests(sources: Path, nodes: Sequence[str]) -> Said:
    quick = ("-q", "-x", "-p", "no:cacheprovider", "--no-header", "--no-skips")
    return run(sources, "-m", "pytest", *quick, *nodes)


def run_chaos(sources: Path, seed: int, seconds: int) -> Said:
    return run(sources, "-m", "chaos", "--seed", str(seed), "--seconds", str(seconds))


def forget(said: Said) -> None:
    """The folder of a run, which stays whenever something was found; it was meant to be."""
    if kept := KEPT.search(said.output):
        shutil.rmtree(kept["folder"], ignore_errors=True)


def check_in_use(sources: Path) -> None:
    where = run(sources, "-c", "import foliot; print(foliot.__file__)").output.strip()
    if not Path(where).is_relative_to(sources):
        raise NotInUse(f"{where} is imported, not what is in {sources}")


def run(sources: Path, *arguments: str) -> Said:
    """By the sources in this folder. A line is as wide as it needs to be: pytest cuts errors off
    where it takes the line to end."""
    path = f"{sources}{os.pathsep}{ROOT}"
    with subprocess.Popen(  # noqa: S603 - our own commands
        [sys.executable, *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": path, "COLUMNS": "300"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as command:
        try:
            output, _ = command.communicate(timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            return Said(f"not over within {LIMIT_SECONDS:g} s", None)
        finally:
            end(command)
    return Said(output, command.returncode)


def end(command: subprocess.Popen[str]) -> None:
    """If it still runs: as by Ctrl-C, so that it takes down what it has started."""
    if command.poll() is not None:
        return
    command.send_signal(signal.SIGINT)
    try:
        command.communicate(timeout=ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        command.kill()
