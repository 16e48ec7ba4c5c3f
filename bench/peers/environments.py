"""An environment of its own for each peer, in `.bench/` beside the code.

It is made when it is first needed, and anew when its pins or its program have changed. Versions are
pinned here, with hashes where the tool knows them; where packages come from is for the machine's
own settings to say.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
PLACE: Final = HERE.parents[1] / ".bench"
STAMP: Final = "made-of"
LIMIT_SECONDS: Final = 600
Command = tuple[str, ...]


class NotMeasured(Exception):
    """A peer cannot be had or does not run here; the text says why."""


@dataclass(frozen=True)
class Environment:
    """`files` are what it is made of, `make` makes it in an empty folder, `run` is the program."""

    name: str
    files: tuple[Path, ...]
    make: Callable[["Environment"], None]
    run: Command

    @property
    def folder(self) -> Path:
        return PLACE / self.name


def provide(environment: Environment) -> None:
    stamp, made_of = environment.folder / STAMP, _digest(environment.files)
    if stamp.exists() and stamp.read_text() == made_of:
        return
    shutil.rmtree(environment.folder, ignore_errors=True)
    environment.folder.mkdir(parents=True)
    environment.make(environment)
    stamp.write_text(made_of)


def in_python(name: str) -> Environment:
    program, pins = HERE / f"{name}_drain.py", HERE / f"{name}.txt"

    def make(environment: Environment) -> None:
        quiet = ("--quiet", "--disable-pip-version-check")
        _do(sys.executable, "-m", "venv", str(environment.folder))
        _do(python, "-m", "pip", "install", *quiet, "--require-hashes", "-r", str(pins))

    python = str(PLACE / name / "bin" / "python")
    return Environment(name, (pins,), make, (python, str(program)))


def in_node(name: str) -> Environment:
    """Node looks for packages where the program lies: it is copied to them."""
    files = tuple(HERE / name / file for file in ("package.json", "package-lock.json", "drain.mjs"))

    def make(environment: Environment) -> None:
        for file in files:
            shutil.copy(file, environment.folder)
        quiet = ("--no-audit", "--no-fund", "--ignore-scripts")
        _do("npm", "ci", *quiet, within=environment.folder)

    return Environment(name, files, make, ("node", str(PLACE / name / "drain.mjs")))


def in_go(name: str) -> Environment:
    source, program = HERE / name, str(PLACE / name / "drain")

    def make(_: Environment) -> None:
        _do("go", "build", "-buildvcs=false", "-o", program, ".", within=source)

    files = tuple(source / file for file in ("go.mod", "go.sum", "main.go"))
    return Environment(name, files, make, (program,))


def _do(*command: str, within: Path = HERE) -> None:
    if shutil.which(command[0]) is None:
        raise NotMeasured(f"there is no {command[0]} here")
    environ = os.environ | {"GOTOOLCHAIN": "local"}  # no other compiler than the one that is here
    try:
        done = subprocess.run(  # noqa: S603 - our own commands
            command,
            cwd=within,
            env=environ,
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NotMeasured(f"{command[0]} took more than {LIMIT_SECONDS} s") from None
    if done.returncode:
        said = last_line(done.stderr or done.stdout)
        raise NotMeasured(f"{Path(command[0]).name} failed: {said}")


def last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip()[:200] if lines else "it did not say why"


def _digest(files: Sequence[Path]) -> str:
    whole = hashlib.sha256(f"{sys.version_info[:2]}".encode())
    for file in files:
        whole.update(file.read_bytes())
    return whole.hexdigest()
