"""What happens during a run, a line of JSON each, appended at once: a run that is killed has left
what it saw. Reading gives back the very things that were written."""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from uuid import UUID

from chaos.facts import Effect, Exchange, Fault, Sample

SINK_FILE: Final = "sink.jsonl"
EXCHANGES_FILE: Final = "exchanges.jsonl"
FAULTS_FILE: Final = "faults.jsonl"
SAMPLES_FILE: Final = "samples.jsonl"


class Journal:
    """One file, only ever added to. A line is in the system's hands when `add` returns, and on the
    disk after `close`."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self.lines = 0

    def add(self, entry: Exchange | Fault | Sample) -> None:
        values = {field.name: getattr(entry, field.name) for field in fields(entry)}
        _write(self._file, json.dumps(values, default=_plain).encode() + b"\n")
        self.lines += 1

    def close(self) -> None:
        os.fsync(self._file)
        os.close(self._file)


class Recorder:
    """The journals of a run's folder. Made in the process that runs it; the sink keeps its own."""

    def __init__(self, folder: Path) -> None:
        self._exchanges = Journal(folder / EXCHANGES_FILE)
        self._faults = Journal(folder / FAULTS_FILE)
        self._samples = Journal(folder / SAMPLES_FILE)

    def exchange(self, entry: Exchange) -> None:
        self._exchanges.add(entry)

    def fault(self, entry: Fault) -> None:
        self._faults.add(entry)

    def sample(self, entry: Sample) -> None:
        self._samples.add(entry)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for journal in (self._exchanges, self._faults, self._samples):
            journal.close()


def read_effects(folder: Path) -> Iterator[Effect]:
    for entry in _entries(folder / SINK_FILE):
        yield Effect(**entry | {"execution_id": UUID(entry["execution_id"])})


def read_exchanges(folder: Path) -> Iterator[Exchange]:
    for entry in _entries(folder / EXCHANGES_FILE):
        ids = {name: _uuid(entry[name]) for name in ("job_id", "execution_id")}
        yield Exchange(**entry | ids)


def read_faults(folder: Path) -> Iterator[Fault]:
    for entry in _entries(folder / FAULTS_FILE):
        yield Fault(**entry | {"began_at": datetime.fromisoformat(entry["began_at"])})


def read_samples(folder: Path) -> Iterator[Sample]:
    for entry in _entries(folder / SAMPLES_FILE):
        yield Sample(**entry | {"at": datetime.fromisoformat(entry["at"])})


def _entries(path: Path) -> Iterator[dict[str, Any]]:
    """None if nothing was ever written. A line without an end is being written: nobody has been
    answered for it."""
    if path.exists():
        with path.open("rb") as lines:
            for line in lines:
                if line.endswith(b"\n"):
                    yield json.loads(line)


def _uuid(text: str | None) -> UUID | None:
    return None if text is None else UUID(text)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"cannot be recorded: {value!r}")


def _write(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]
