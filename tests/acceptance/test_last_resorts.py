"""How a process goes that no longer listens: when its time is up, whatever its wall clock says."""

import os
import signal
import subprocess
import sys
from typing import Final

import pytest

from foliot.runtime.lifeline import Lifeline
from foliot.testing.wrong_clock import LIBRARY, clock_off_by

# Both are deaf to all but the end of their input, which does not come.
ENDING: Final = """
import sys
from foliot.runtime.service import end_within
end_within(0.3, 7)
sys.stdin.read()
"""
ORPHAN: Final = """
import signal, sys
from foliot.runtime.lifeline import leave_with_parent
signal.signal(signal.SIGTERM, signal.SIG_IGN)
leave_with_parent(int(sys.argv[1]))
print("ready", flush=True)
sys.stdin.read()
"""
CLOCKS: Final = [
    0,
    *(
        pytest.param(
            off,
            marks=pytest.mark.skipif(
                not LIBRARY.exists(), reason="needs libfaketime (apt-get install faketime)"
            ),
        )
        for off in (-300, 300)
    ),
]


def started(code: str, off: int, *arguments: str, fd: int | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | (clock_off_by(off) if off else {}),
        pass_fds=() if fd is None else (fd,),
        start_new_session=True,
    )


def end_of(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Its status and what it cried."""
    try:
        status = process.wait(10)
    finally:
        process.kill()
    assert process.stderr is not None
    return status, process.stderr.read()


@pytest.mark.parametrize("off", CLOCKS)
def test_a_process_that_is_to_end_ends(off: int) -> None:
    with started(ENDING, off) as process:
        assert end_of(process) == (7, "")


@pytest.mark.parametrize("off", CLOCKS)
def test_a_process_that_will_not_leave_with_its_parent_is_made_to(off: int) -> None:
    parent = Lifeline.open()
    with started(ORPHAN, off, str(parent.read_fd), fd=parent.read_fd) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        parent.close()
        assert end_of(process) == (-signal.SIGKILL, "")
