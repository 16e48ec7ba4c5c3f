"""A folder that an unprivileged user may enter."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Anyone may pass through it; pytest's own folders are closed to all but us."""
    folder = Path(tempfile.mkdtemp(prefix="foliot-acceptance-", dir="/tmp"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)
