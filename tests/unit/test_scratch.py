"""Folders for commands: new for each, gone after it, and after its worker's death."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from foliot.worker.commands.scratch import PREFIX, Scratch, remove

NOBODY: Final = 65_534


def test_each_folder_is_new_and_nobody_elses(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    scratch.open()
    first, second = scratch.folder(), scratch.folder()
    assert first != second
    assert first.stat().st_mode & 0o777 == 0o700
    scratch.close()
    assert list(tmp_path.iterdir()) == []


def test_what_a_dead_worker_left_is_removed_and_what_a_living_one_has_stays(tmp_path: Path) -> None:
    left = tmp_path / f"{PREFIX}left"
    (left / "inner").mkdir(parents=True)
    (left / "inner" / "file").write_text("x")
    living = Scratch(tmp_path)
    living.open()
    assert not left.exists()
    kept = living.folder()
    other = Scratch(tmp_path)
    other.open()
    assert kept.exists()
    other.close()
    living.close()


def test_a_link_planted_under_the_name_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    parent = tmp_path / "parent"
    parent.mkdir()
    (parent / f"{PREFIX}planted").symlink_to(precious)
    scratch = Scratch(parent)
    scratch.open()
    assert precious.exists()
    scratch.close()


def test_a_folder_that_was_tidied_away_is_made_again(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    scratch.open()
    assert scratch.root is not None
    scratch.root.rmdir()
    assert scratch.folder().is_dir()
    scratch.close()


@contextmanager
def an_ordinary_user() -> Iterator[Path]:
    """A folder of somebody whom permissions bind; nothing is closed to root."""
    user = NOBODY if os.geteuid() == 0 else os.geteuid()
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    os.chown(folder, user, -1)
    before = os.geteuid()
    os.seteuid(user)
    try:
        yield folder
    finally:
        os.seteuid(before)
        shutil.rmtree(folder)


def test_folders_without_permissions_are_removed() -> None:
    with an_ordinary_user() as parent:
        folder = parent / "folder"
        (folder / "a" / "b").mkdir(parents=True)
        (folder / "a" / "b").chmod(0)
        (folder / "a").chmod(0o500)
        remove(folder)
        assert not folder.exists()


def test_links_in_a_folder_lead_nowhere(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("x")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link").symlink_to(outside)
    remove(folder)
    assert not folder.exists()
    assert (outside / "file").exists()
