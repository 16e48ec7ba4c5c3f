"""The proof itself, short: a whole system under seeded faults, and every invariant holds."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from chaos.cluster import ROOT
from chaos.node import family as all_of
from foliot.testing.commands import eventually, is_alive

# Another one is tried with FOLIOT_TEST_SEED.
SEED: Final = os.environ.get("FOLIOT_TEST_SEED", "1")
SECONDS: Final = 40
RATE: Final = 40
RUN_SECONDS: Final = 170
# The server, the sink, seven nodes and some connections of theirs.
PROCESSES: Final = 25


def command(folder: Path) -> subprocess.Popen[str]:
    arguments = ["--seed", SEED, "--seconds", str(SECONDS), "--rate", str(RATE)]
    return subprocess.Popen(
        [sys.executable, "-m", "chaos", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(folder)},
    )


@pytest.mark.timeout(RUN_SECONDS + 30)
def test_every_invariant_holds_under_faults(open_folder: Path) -> None:
    with command(open_folder) as run:
        try:
            said, _ = run.communicate(timeout=RUN_SECONDS)
        finally:
            run.terminate()
    assert run.returncode == 0, said
    assert not list(open_folder.iterdir()), "what has held is not kept"


@pytest.mark.timeout(90)
def test_a_run_that_is_interrupted_leaves_nothing_behind(open_folder: Path) -> None:
    with command(open_folder) as run:
        family: set[int] = set()

        def is_at_work() -> bool:
            family.update(all_of(run.pid))
            return len(family) > PROCESSES

        eventually(is_at_work, what="all nodes are started", within_seconds=60)
        run.send_signal(signal.SIGINT)
        eventually(lambda: run.poll() is not None, what="it ends", within_seconds=40)
    assert run.returncode == 130
    left = [pid for pid in family if is_alive(pid)]
    assert not left
    assert not list(open_folder.iterdir())
