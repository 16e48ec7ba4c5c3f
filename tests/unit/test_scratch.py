"""Folders for commands: new for each, gone after it, and after its worker's death."""

from pathlib import Path

import pytest

from foliot.testing.programs import an_ordinary_user, nest
from foliot.worker.commands import scratch as scratch_module
from foliot.worker.commands.scratch import PREFIX, Scratch


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


def test_a_folder_that_a_program_has_shut_is_opened_again() -> None:
    with an_ordinary_user() as parent:
        scratch = Scratch(parent)
        scratch.open()
        assert scratch.root is not None
        for mode in (0o500, 0):
            scratch.root.chmod(mode)
            assert scratch.folder().is_dir()
        scratch.close()
        assert list(parent.iterdir()) == []


def test_a_deep_tree_of_a_dead_worker_keeps_no_other_from_starting(tmp_path: Path) -> None:
    left = tmp_path / f"{PREFIX}left"
    nest(left, 1500)
    scratch = Scratch(tmp_path)
    scratch.open()
    assert not left.exists()
    scratch.close()


def test_what_cannot_be_removed_is_locked_by_nobody_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = tmp_path / f"{PREFIX}left"
    left.mkdir()

    def fail(_: Path) -> None:
        raise OSError("it stays")

    with monkeypatch.context() as broken:
        broken.setattr(scratch_module, "remove", fail)
        first = Scratch(tmp_path)
        first.open()
    second = Scratch(tmp_path)
    second.open()
    assert not left.exists()
    first.close()
    second.close()
