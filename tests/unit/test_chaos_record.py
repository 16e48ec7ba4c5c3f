"""What is written of a run is read back as it was."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from uuid import UUID

from chaos.facts import Exchange, Fault, Sample
from chaos.record import (
    FAULTS_FILE,
    Recorder,
    read_effects,
    read_exchanges,
    read_faults,
    read_samples,
)

AT: Final = datetime(2026, 11, 16, 6, 30, 1, 250_000, tzinfo=UTC)
JOB: Final = UUID("00000000-0000-8000-8000-000000000001")


def test_everything_comes_back_as_it_was(tmp_path: Path) -> None:
    exchanges = (
        Exchange("enqueue", 1.25, 1.5, 202, "key", {"job": "x"}, {"id": "y"}, JOB, None),
        Exchange("cancel", 2.5, None, None, None, {}, None, None, JOB),
    )
    fault = Fault("kill worker", "worker-1", 3.0, 3.0, AT, "after executions/finish", {"held": []})
    sample = Sample(4.0, AT, {"api": {"pid": 7, "rss_bytes": 1}}, 20, 0.5, 64, 3)
    with Recorder(tmp_path) as recorder:
        for exchange in exchanges:
            recorder.exchange(exchange)
        recorder.fault(fault)
        recorder.sample(sample)
    assert tuple(read_exchanges(tmp_path)) == exchanges
    assert list(read_faults(tmp_path)) == [fault]
    assert list(read_samples(tmp_path)) == [sample]


def test_a_second_recorder_adds_to_what_the_first_has_written(tmp_path: Path) -> None:
    faults = [Fault("reset", "api", moment, moment, AT) for moment in (1.0, 2.0)]
    for fault in faults:
        with Recorder(tmp_path) as recorder:
            recorder.fault(fault)
    assert list(read_faults(tmp_path)) == faults


def test_a_run_without_effects_has_none(tmp_path: Path) -> None:
    assert list(read_effects(tmp_path)) == []


def test_what_is_being_written_is_not_there_yet(tmp_path: Path) -> None:
    fault = Fault("reset", "api", 1.0, 1.0, AT)
    with Recorder(tmp_path) as recorder:
        recorder.fault(fault)
    with (tmp_path / FAULTS_FILE).open("ab") as file:
        file.write(b'{"kind": "res')
    assert list(read_faults(tmp_path)) == [fault]
