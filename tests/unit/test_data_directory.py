"""One owner per folder, and a server file that is whole, private and current."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from foliot.runtime.data_directory import (
    DataDirectoryInUse,
    DataDirectoryUnusable,
    RunningRole,
    RunningServer,
    ServerFileUnreadable,
    owned,
    read_server_file,
    remove_server_file,
    write_server_file,
)

SERVER = RunningServer("http://127.0.0.1:1", 7, "postgresql://a/b", (RunningRole("api", 8),))


def test_a_folder_has_one_owner_who_is_named(tmp_path: Path) -> None:
    with owned(tmp_path), pytest.raises(DataDirectoryInUse) as refused, owned(tmp_path):
        pass
    assert refused.value.pid == os.getpid()


def test_a_folder_is_free_again_after_its_owner(tmp_path: Path) -> None:
    with owned(tmp_path):
        pass
    with owned(tmp_path):
        pass


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    """Root would empty whatever it points at."""
    precious = tmp_path / "precious"
    precious.write_text("keep")
    (tmp_path / "up.lock").symlink_to(precious)
    with pytest.raises(DataDirectoryUnusable), owned(tmp_path):
        pass
    assert precious.read_text() == "keep"


def test_a_killed_owner_leaves_the_folder_free(tmp_path: Path) -> None:
    program = (
        "import os, pathlib, signal, sys; from foliot.runtime.data_directory import owned\n"
        "with owned(pathlib.Path(sys.argv[1])): os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    assert ended.returncode == -9
    with owned(tmp_path):
        pass


def test_a_new_folder_is_closed_to_the_eyes_of_others(tmp_path: Path) -> None:
    with owned(tmp_path / "a" / "b"):
        mode = stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode)
    assert mode == (0o711 if os.geteuid() == 0 else 0o700)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataDirectoryUnusable, match=r"cannot write to .*/file/sub: not a dir"):
        owned(tmp_path / "file" / "sub").__enter__()


def test_the_server_file_is_read_back_as_written_and_private(tmp_path: Path) -> None:
    write_server_file(tmp_path, SERVER)
    assert read_server_file(tmp_path) == SERVER
    assert json.loads((tmp_path / "server.json").read_text())["roles"] == [
        {"role": "api", "pid": 8}
    ]
    assert stat.S_IMODE((tmp_path / "server.json").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["server.json"]


def test_the_server_file_is_replaced_in_one_step(tmp_path: Path) -> None:
    """Who has the old one open keeps reading it whole."""
    write_server_file(tmp_path, SERVER)
    with (tmp_path / "server.json").open() as old:
        write_server_file(tmp_path, RunningServer("http://127.0.0.1:2", 7, "", ()))
        assert json.load(old)["url"] == SERVER.url
    found = read_server_file(tmp_path)
    assert found is not None
    assert found.url == "http://127.0.0.1:2"


def test_a_draft_left_by_a_crash_is_neither_read_nor_kept(tmp_path: Path) -> None:
    draft = tmp_path / "server.draft"
    draft.write_text("half")
    draft.chmod(0o644)
    assert read_server_file(tmp_path) is None
    write_server_file(tmp_path, SERVER)
    assert stat.S_IMODE((tmp_path / "server.json").stat().st_mode) == 0o600


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"roles": [{}]}', '{"roles": 1}'])
def test_a_server_file_that_makes_no_sense_is_no_server(tmp_path: Path, content: str) -> None:
    (tmp_path / "server.json").write_text(content)
    assert read_server_file(tmp_path) is None


def test_a_server_file_of_somebody_else_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(ServerFileUnreadable, match=r"/server\.json: permission denied \(run this"):
        read_server_file(tmp_path)


def test_removing_what_is_not_there_is_no_error(tmp_path: Path) -> None:
    remove_server_file(tmp_path)
