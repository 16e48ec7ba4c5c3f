"""Importing the user's handlers: what is found, and how a failure is told."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from foliot.worker.modules import ModuleNotImported, import_handlers


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def failure_of(target: str) -> ModuleNotImported:
    with pytest.raises(ModuleNotImported) as refused:
        import_handlers(target)
    return refused.value


def test_a_file_may_import_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "uses_neighbour.py").write_text("import the_neighbour\n")
    (tmp_path / "sub" / "the_neighbour.py").write_text("")
    imported = import_handlers("sub/uses_neighbour.py")
    assert imported.name == "uses_neighbour"
    assert imported.path == tmp_path / "sub" / "uses_neighbour.py"


def test_a_file_named_twice_is_imported_once(tmp_path: Path) -> None:
    (tmp_path / "once.py").write_text("import sys\nsys.path.append('seen')\n")
    import_handlers("once.py")
    import_handlers("./once.py")
    assert sys.path.count("seen") == 1


def test_a_module_is_looked_for_in_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / "here_only.py").write_text("")
    assert import_handlers("here_only").path == tmp_path / "here_only.py"


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("nowhere.py", "there is no such Python file"),
        ("sub/nowhere", "there is no such Python file"),
        ("not_there.mail", "there is no module not_there in "),
        ("not a module", "name a module (shop.mail) or a file (shop/mail.py)"),
        ("", "name a module (shop.mail) or a file (shop/mail.py)"),
    ],
)
def test_what_is_not_there_needs_no_traceback(target: str, reason: str) -> None:
    failure = failure_of(target)
    assert reason in str(failure)
    assert failure.trace == ""


def test_a_file_that_would_hide_a_module_is_refused(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("")
    assert "its name hides the module json: rename the file" in str(failure_of("json.py"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import no_such_thing", "ModuleNotFoundError: No module named 'no_such_thing'"),
        ("def f(:", "SyntaxError: "),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise BaseException('enough')", "BaseException: enough"),
        ("assert False, 'never'", "AssertionError: never"),
    ],
)
@pytest.mark.parametrize("target", ["broken_one.py", "broken_one"])
def test_a_failure_is_told_by_its_last_line_and_the_users_own_frames(
    tmp_path: Path, text: str, reason: str, target: str
) -> None:
    (tmp_path / "broken_one.py").write_text(text)
    failure = failure_of(target)
    assert str(failure).startswith(f"cannot import {target}: {reason}")
    assert str(tmp_path / "broken_one.py") in failure.trace
    assert "importlib" not in failure.trace
    assert "broken_one" not in sys.modules
