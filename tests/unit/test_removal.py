"""Folders go with all that is in them, or say once that they stay."""

import logging
import os
import resource
from pathlib import Path
from typing import Final

import pytest

from foliot.testing.programs import an_ordinary_user, nest
from foliot.worker.commands import removal
from foliot.worker.commands.removal import remove

# Deeper than calls may be nested, than a path may be long, and than files may be open below.
DEPTH: Final = 3000
FILES_MAX: Final = 256


def test_a_tree_deeper_than_any_path_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    nest(folder, DEPTH)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES_MAX, before[1]))
    try:
        remove(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert not folder.exists()


def test_a_broad_tree_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    for branch in range(5):
        for twig in range(5):
            (folder / str(branch) / str(twig)).mkdir(parents=True)
            (folder / str(branch) / str(twig) / "leaf").write_text("x")
        (folder / str(branch) / "leaf").write_text("x")
    remove(folder)
    assert not folder.exists()


def test_what_is_gone_already_is_nothing_to_speak_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    remove(tmp_path / "gone")
    assert not caplog.records


def test_folders_without_permissions_are_removed() -> None:
    with an_ordinary_user() as parent:
        folder = parent / "folder"
        (folder / "a" / "b" / "c").mkdir(parents=True)
        for shut in (folder / "a" / "b" / "c", folder / "a" / "b"):
            shut.chmod(0)
        (folder / "a").chmod(0o500)
        folder.chmod(0)
        remove(folder)
        assert not folder.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has another's files to leave")
def test_what_is_anothers_stays_and_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    with an_ordinary_user() as parent:
        folder = parent / "folder"
        (folder / "a" / "empty").mkdir(parents=True)
        (folder / "a" / "own").write_text("x")
        user = os.geteuid()
        os.seteuid(0)
        (folder / "a" / "full" / "inner").mkdir(parents=True)
        for name in ("one", "two"):
            (folder / "a" / "full" / name).write_text("x")
        os.chown(folder / "a" / "empty", 0, 0)
        os.seteuid(user)
        remove(folder)
        assert sorted(path.name for path in folder.rglob("*") if path.is_file()) == ["one", "two"]
        (told,) = caplog.records
        assert told.getMessage() == f"{folder} stays, or a part of it: Permission denied"


def test_links_in_a_folder_lead_nowhere(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o750)
    (outside / "file").write_text("x")
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    for place in (folder, folder / "inner"):
        (place / "link").symlink_to(outside)
        (place / "file").symlink_to(outside / "file")
    remove(folder)
    assert not folder.exists()
    assert (outside / "file").exists()
    assert outside.stat().st_mode & 0o777 == 0o750


def test_a_link_in_the_place_of_a_folder_is_not_followed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o750)
    (outside / "file").write_text("x")
    link = tmp_path / "link"
    link.symlink_to(outside)
    remove(link)
    assert (outside / "file").exists()
    assert outside.stat().st_mode & 0o777 == 0o750
    assert len(caplog.records) == 1


def test_the_folder_around_it_is_left_as_it_was(tmp_path: Path) -> None:
    """It may be everybody's."""
    parent = tmp_path / "parent"
    parent.mkdir()
    parent.chmod(0o1777)
    (parent / "file").write_text("x")
    remove(parent / "file")
    assert parent.stat().st_mode & 0o7777 == 0o1777


def test_a_defect_of_ours_is_told_and_not_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: Path) -> OSError | None:
        raise RecursionError

    monkeypatch.setattr(removal, "_remove", fail)
    remove(tmp_path)
    (told,) = caplog.records
    assert told.levelno == logging.ERROR
