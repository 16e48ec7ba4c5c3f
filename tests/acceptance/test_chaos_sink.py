"""The sink as handlers know it: what it has answered is in its file, in the order of numbers."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final
from uuid import UUID

import pytest

from chaos.cluster import ROOT
from chaos.facts import Effect
from chaos.record import SINK_FILE, read_effects
from chaos.sink import LISTENING

CLIENTS: Final = 8
RECORDS: Final = 20
ID: Final = UUID("00000000-0000-8000-8000-000000000001")


@pytest.fixture
def sink(tmp_path: Path) -> Iterator[Path]:
    """Its socket; its file is in the same folder."""
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
        assert process.stdout.readline().strip() == LISTENING
        yield tmp_path / "sink"
        process.stdin.close()
        assert process.wait(10) == 0


def record(client: int, number: int) -> bytes:
    known = {"execution_id": str(ID), "fence": client, "attempt_number": number}
    rest = {"idempotency_key": "k", "what": "begun", "process": 1, "job": "j"}
    return json.dumps(known | rest).encode() + b"\n"


def tell(sink: Path, client: int) -> list[int]:
    """The numbers of its records, each asked for after the one before."""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(sink))
        with line.makefile("rb") as answers:
            told = []
            for number in range(RECORDS):
                line.sendall(record(client, number))
                told.append(int(answers.readline()))
                assert told[-1] in {effect.number for effect in read_effects(sink.parent)}
    return told


def test_what_was_answered_is_in_the_file(sink: Path) -> None:
    with ThreadPoolExecutor(CLIENTS) as clients:
        told = list(clients.map(lambda client: tell(sink, client), range(CLIENTS)))
    effects = list(read_effects(sink.parent))
    assert [effect.number for effect in effects] == list(range(1, CLIENTS * RECORDS + 1))
    assert effects == sorted(effects, key=lambda effect: effect.monotonic)
    by_number = {effect.number: effect for effect in effects}
    for client, numbers in enumerate(told):
        mine: list[Effect] = [by_number[number] for number in numbers]
        assert [(one.fence, one.attempt_number) for one in mine] == [
            (client, number) for number in range(RECORDS)
        ]
