"""Processes of a node, found by who started them, whatever session they are in."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Final

import pytest

from chaos.node import children, family
from foliot.testing.commands import eventually

# A child in a session of its own, which has a child.
NESTED: Final = """
import subprocess, sys, time
if sys.argv[1] != "0":
    subprocess.Popen(
        [sys.executable, "-c", sys.argv[2], str(int(sys.argv[1]) - 1),
         sys.argv[2]], start_new_session=True)
time.sleep(60)
"""


@pytest.fixture
def parent() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", NESTED, "2", NESTED]) as process:
        yield process.pid
        for pid in family(process.pid):
            os.kill(pid, signal.SIGKILL)
        process.kill()


def test_grandchildren_are_of_the_family(parent: int) -> None:
    eventually(lambda: len(family(parent)) == 2, what="all are there")
    (child,) = children(parent)
    (grandchild,) = children(child)
    assert family(parent) == [child, grandchild]
    assert family(grandchild) == []


def test_who_is_no_more_has_no_family() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert family(process.pid) == []
