"""Children that nobody wants are ended, and those that cannot be ended hold up nobody.

What is tested runs in a process of its own, which adopts a stray and says how it fares with it.
"""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from foliot.testing.slow_deaths import slow_to_die

# The stray ends with its input. It comes from a child that has ended, as a handler's would.
PARENT: Final = """
import os, signal, sys
from foliot.runtime.family import Strays, adopt_orphans, children

def tell(*words):
    print(*words, flush=True)

def end_strays():
    strays.end()
    tell("left", len(children()))

strays = Strays()
adopt_orphans()
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, signal.SIGUSR1})
child = os.fork()
if child == 0:
    stray = os.fork()
    if stray == 0:
        sys.stdin.buffer.raw.read()
    os._exit(0)
signal.sigwait({signal.SIGCHLD})
os.waitpid(child, 0)
tell(*children())
"""
UNDER_OTHER_RIGHTS: Final = """
def refuse(pid, number):
    raise PermissionError

if os.geteuid() == 0:
    os.setresuid(65534, 65534, 65534)
else:
    os.kill = refuse
end_strays()
signal.sigwait({signal.SIGCHLD})
end_strays()
"""
HELD: Final = """
signal.sigwait({signal.SIGUSR1})
end_strays()
signal.sigwait({signal.SIGCHLD})
end_strays()
"""


@contextmanager
def parent(then: str) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """With the number of the stray it has."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT + then],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process, int(heard(process))
        finally:
            process.kill()


def heard(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_stray_is_killed_and_buried() -> None:
    with parent("end_strays()") as (process, _):
        assert heard(process) == "left 0"


def test_a_stray_under_other_rights_is_buried_when_it_has_ended_by_itself() -> None:
    with parent(UNDER_OTHER_RIGHTS) as (process, _):
        assert heard(process) == "left 1"
        assert process.stdin is not None
        process.stdin.close()
        assert heard(process) == "left 0"
        assert process.wait(10) == 0


def test_a_stray_that_does_not_die_of_it_is_not_waited_for() -> None:
    with parent(HELD) as (process, stray):
        with slow_to_die(stray):
            process.send_signal(signal.SIGUSR1)
            assert heard(process) == "left 1"
        assert heard(process) == "left 0"
        assert process.wait(10) == 0
