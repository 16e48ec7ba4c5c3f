"""The sink as handlers know it: what it has answered is in its file, in the order of numbers."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

import pytest

from chaos.cluster import ROOT
from chaos.facts import Effect
from chaos.record import SINK_FILE, read_effects
from chaos.sink import LISTENING
from foliot.testing.commands import eventually

CLIENTS: Final = 8
RECORDS: Final = 20
ID: Final = UUID("00000000-0000-8000-8000-000000000001")


class Sink(NamedTuple):
    socket: Path
    port: int

    def effects(self) -> list[Effect]:
        return list(read_effects(self.socket.parent))


@pytest.fixture
def sink(tmp_path: Path) -> Iterator[Sink]:
    """Its file is in the same folder."""
    command = [
        sys.executable,
        "-m",
        "chaos.sink",
        str(tmp_path / "sink"),
        str(tmp_path / SINK_FILE),
    ]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        word, port = process.stdout.readline().split()
        assert word == LISTENING
        yield Sink(tmp_path / "sink", int(port))
        process.stdin.close()
        assert process.wait(10) == 0


def record(client: int, number: int) -> bytes:
    known = {"execution_id": str(ID), "fence": client, "attempt_number": number}
    rest = {"idempotency_key": "k", "what": "begun", "process": 1, "job": "j"}
    return json.dumps(known | rest).encode() + b"\n"


def tell(sink: Sink, client: int) -> list[int]:
    """The numbers of its records, each asked for after the one before."""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(sink.socket))
        with line.makefile("rb") as answers:
            told = []
            for number in range(RECORDS):
                line.sendall(record(client, number))
                told.append(int(answers.readline()))
                assert told[-1] in {effect.number for effect in sink.effects()}
    return told


def test_what_was_answered_is_in_the_file(sink: Sink) -> None:
    with ThreadPoolExecutor(CLIENTS) as clients:
        told = list(clients.map(lambda client: tell(sink, client), range(CLIENTS)))
    effects = sink.effects()
    assert [effect.number for effect in effects] == list(range(1, CLIENTS * RECORDS + 1))
    assert effects == sorted(effects, key=lambda effect: effect.monotonic)
    by_number = {effect.number: effect for effect in effects}
    for client, numbers in enumerate(told):
        mine: list[Effect] = [by_number[number] for number in numbers]
        assert [(one.fence, one.attempt_number) for one in mine] == [
            (client, number) for number in range(RECORDS)
        ]


def call(sink: Sink, path: str, attempt: int = 1, **payload: float) -> HTTPConnection:
    """As a worker does; the answer is not read yet."""
    line = HTTPConnection("127.0.0.1", sink.port, timeout=10)
    headers = {
        "X-Execution-ID": str(ID),
        "X-Fencing-Token": str(attempt + 2),
        "X-Attempt-Number": str(attempt),
        "X-Idempotency-Key": "k",
    }
    line.request("POST", path, json.dumps(payload), headers)
    return line


def test_what_is_called_tells_of_itself_as_a_handler_does(sink: Sink) -> None:
    for attempt, path, status in (
        (1, "/stumble/j", 503),
        (2, "/stumble/j", 200),
        (3, "/quick/j", 200),
        (4, "/slow/j", 200),
    ):
        line = call(sink, path, attempt, failures=1, seconds=0.01)
        with line.getresponse() as answer:
            assert answer.status == status
        line.close()
    told = [(one.what, one.fence, one.attempt_number, one.job) for one in sink.effects()]
    assert told[:2] == [("begun", 3, 1, "j"), ("failing", 3, 1, "j")]
    assert told[2:] == [(what, n + 2, n, "j") for n in (2, 3, 4) for what in ("begun", "done")]
    assert {(one.execution_id, one.idempotency_key) for one in sink.effects()} == {(ID, "k")}


def test_whoever_hangs_up_has_it_stopped(sink: Sink) -> None:
    line = call(sink, "/slow/j", seconds=1000.0)
    eventually(lambda: len(sink.effects()) == 1, what="it has begun")
    line.close()
    eventually(lambda: len(sink.effects()) == 2, what="it was stopped")
    assert [one.what for one in sink.effects()] == ["begun", "cancelled"]
