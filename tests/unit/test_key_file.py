"""The folder's key: made once, kept, and for its owner's eyes alone."""

import stat
from pathlib import Path

import pytest

from foliot.runtime.data_directory import DataDirectoryUnusable
from foliot.runtime.envelope import Keyring
from foliot.runtime.key_file import (
    KEY_FILE,
    SECRET_KEYS_FILE,
    kept_secret_keys,
    provide_key,
    provide_secret_keys,
)


def test_a_key_is_made_once_and_then_stays(tmp_path: Path) -> None:
    key = provide_key(tmp_path)
    assert len(key) >= 32
    assert provide_key(tmp_path) == key
    assert stat.S_IMODE((tmp_path / KEY_FILE).stat().st_mode) == 0o600


def test_keys_of_secrets_are_made_once_and_can_be_used(tmp_path: Path) -> None:
    assert kept_secret_keys(tmp_path) is None
    keys = provide_secret_keys(tmp_path)
    assert provide_secret_keys(tmp_path) == kept_secret_keys(tmp_path) == keys
    assert stat.S_IMODE((tmp_path / SECRET_KEYS_FILE).stat().st_mode) == 0o600
    ring = Keyring.parse(keys)
    assert ring.open(ring.seal(b"value", b""), b"") == b"value"


def test_keys_of_secrets_that_are_none_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / SECRET_KEYS_FILE).write_text("something else")
    for look in (provide_secret_keys, kept_secret_keys):
        with pytest.raises(DataDirectoryUnusable, match="secret-keys: it holds something else"):
            look(tmp_path)
    assert (tmp_path / SECRET_KEYS_FILE).read_text() == "something else"


def test_two_folders_have_two_keys(tmp_path: Path) -> None:
    keys = set()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        keys.add(provide_key(tmp_path / name))
    assert len(keys) == 2


def test_an_empty_file_is_no_key(tmp_path: Path) -> None:
    (tmp_path / KEY_FILE).write_text("\n")
    assert len(provide_key(tmp_path)) >= 32


def test_a_link_that_leads_nowhere_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / KEY_FILE).symlink_to(tmp_path / "elsewhere")
    provide_key(tmp_path)
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / KEY_FILE).write_bytes(b"\xff\xfe")
    with pytest.raises(DataDirectoryUnusable, match="api-key"):
        provide_key(tmp_path)
