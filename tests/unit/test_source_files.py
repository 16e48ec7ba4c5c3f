"""An edit of the user's code is noticed, whichever way the code was named."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from foliot.runtime.source_files import stamp_of


def touch(path: Path, text: str = "x = 1\n", at: int = 1_000) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, ns=(at, at))


@pytest.mark.parametrize(
    "edit",
    [
        lambda folder: touch(folder / "shop/mail.py", at=2_000),
        lambda folder: touch(folder / "shop/mail.py", "x = 22\n"),
        lambda folder: touch(folder / "shop/new.py"),
        lambda folder: (folder / "shop/other.py").unlink(),
    ],
)
@pytest.mark.parametrize("target", ["shop/mail.py", "shop.mail", "shop"])
def test_an_edit_changes_the_stamp(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    target: str,
    edit: Callable[[Path], None],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("shop/mail.py", "shop/other.py"):
        touch(tmp_path / name)
    before = stamp_of([target])
    assert len(before) == 2
    assert stamp_of([target]) == before
    edit(tmp_path)
    assert stamp_of([target]) != before


def test_a_single_file_module_and_what_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert stamp_of(["mail", "nowhere/x.py"]) == frozenset()
    touch(tmp_path / "mail.py")
    assert len(stamp_of(["mail", "nowhere/x.py"])) == 1
