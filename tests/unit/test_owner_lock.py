"""A lock has one owner, who is named, and is free when its owner is gone."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from foliot.runtime.owner_lock import OwnedByAnother, OwnerLock


def test_the_second_is_told_who_the_owner_is(tmp_path: Path) -> None:
    lock = OwnerLock.take(tmp_path / "lock")
    with pytest.raises(OwnedByAnother) as refused:
        OwnerLock.take(tmp_path / "lock")
    assert refused.value.pid == os.getpid()
    lock.release()
    OwnerLock.take(tmp_path / "lock").release()


@pytest.mark.parametrize("written", ["", "nobody\n", "-1\n", "\xb2\n"])
def test_an_owner_who_has_not_said_its_name_is_unknown(tmp_path: Path, written: str) -> None:
    lock = OwnerLock.take(tmp_path / "lock")
    (tmp_path / "lock").write_text(written)
    with pytest.raises(OwnedByAnother) as refused:
        OwnerLock.take(tmp_path / "lock")
    assert refused.value.pid is None
    lock.release()


def test_a_shorter_number_leaves_nothing_of_a_longer_one(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("999999999999999999\n")
    lock = OwnerLock.take(tmp_path / "lock")
    assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"
    lock.release()


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("keep")
    (tmp_path / "lock").symlink_to(precious)
    with pytest.raises(OSError, match="symbolic links"):
        OwnerLock.take(tmp_path / "lock")
    assert precious.read_text() == "keep"


def test_a_new_file_is_as_open_as_asked(tmp_path: Path) -> None:
    OwnerLock.take(tmp_path / "own").release()
    OwnerLock.take(tmp_path / "shown", mode=0o644).release()
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("own", "shown")]
    assert modes == [0o600, 0o644]


def test_a_program_that_its_owner_starts_does_not_inherit_it(tmp_path: Path) -> None:
    lock = OwnerLock.take(tmp_path / "lock")
    child = subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        close_fds=False,
    )
    assert child.stdout is not None
    try:
        child.stdout.readline()  # it is another program by now
        lock.release()
        OwnerLock.take(tmp_path / "lock").release()
    finally:
        child.communicate(b"\n")
