"""Removes a folder with all that a program has left in it, however deep.

A program can nest folders deeper than a path can be long, than a process may have files open and
than calls may be nested. So nothing here goes down: each folder that is found is moved up to the
top, and emptied there. By name only what is in an open folder is touched, and no link is followed.
What something is mounted on cannot be moved, and so is not entered either.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from foliot.runtime.chance import random_name

log = logging.getLogger(__name__)


def remove(folder: Path) -> None:
    """Raises nothing: what cannot be removed stays, and that is told once."""
    try:
        refusal = _remove(folder)
    except Exception:  # a defect of ours must not pass for the program's
        log.exception("%s could not be removed", folder)
        return
    if refusal is not None:
        log.warning("%s stays, or a part of it: %s", folder, refusal.strerror or refusal)


def _remove(folder: Path) -> OSError | None:
    """The first thing that stood in the way."""
    removal = None
    try:
        with _opened(str(folder)) as top:
            removal = _Removal(top)
            removal.run()
        folder.rmdir()
    except FileNotFoundError:
        return None
    except OSError as error:
        return (removal and removal.refusal) or error
    return None


class _Removal:
    """Of all that is in the open folder `top`."""

    def __init__(self, top: int) -> None:
        self.refusal: OSError | None = None
        self._top = top
        self._name = random_name()
        self._moved = 0
        self._waiting: list[str] = []

    def run(self) -> None:
        self._empty(self._top)
        while self._waiting:
            name = self._waiting.pop()
            with self._noting():
                with _opened(name, self._top) as fd:
                    self._empty(fd)
                os.rmdir(name, dir_fd=self._top)

    def _empty(self, fd: int) -> None:
        with os.scandir(fd) as found:
            entries = [(each.name, each.is_dir(follow_symlinks=False)) for each in found]
        for name, is_folder in entries:
            with self._noting():
                if is_folder:
                    self._move_up(name, fd)
                else:
                    os.unlink(name, dir_fd=fd)

    def _move_up(self, name: str, fd: int) -> None:
        self._moved += 1
        new = f"{self._name}-{self._moved}"
        try:
            os.rename(name, new, src_dir_fd=fd, dst_dir_fd=self._top)
        except PermissionError:
            # To move a folder takes the right to write in it. Another's may be empty.
            _give_rights(name, fd)
            with suppress(OSError):
                os.rmdir(name, dir_fd=fd)
                return
            os.rename(name, new, src_dir_fd=fd, dst_dir_fd=self._top)
        self._waiting.append(new)

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            pass  # somebody else tidies up as well
        except OSError as error:
            self.refusal = self.refusal or error


@contextmanager
def _opened(name: str, within: int | None = None) -> Iterator[int]:
    """A folder, with the rights of its owner."""
    _give_rights(name, within)
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(name, flags, dir_fd=within)
    try:
        yield fd
    finally:
        os.close(fd)


def _give_rights(name: str, within: int | None) -> None:
    """To its owner, to do anything in this folder. Another's folder may be open to us as it is."""
    flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(name, flags, dir_fd=within)
    try:
        # A folder without rights can only be opened as a place, and what is open as a place has
        # no rights to change but by this name. By its own name it could be a link by now.
        with suppress(OSError):
            Path(f"/proc/self/fd/{fd}").chmod(0o700)
    finally:
        os.close(fd)
