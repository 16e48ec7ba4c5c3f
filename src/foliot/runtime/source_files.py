"""Has anybody edited the code? A stamp of the Python files around some targets, to compare."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

FILES_MAX: Final = 5000

Stamp = frozenset[tuple[str, int, int]]


def stamp_of(targets: Sequence[str]) -> Stamp:
    """Of a file `shop/mail.py`: what lies beside it. Of a module `shop.mail`: all of `shop`."""
    found = (path for target in targets for path in _files(target))
    return frozenset(mark for path in islice(found, FILES_MAX) if (mark := _mark(path)))


def _files(target: str) -> Iterator[Path]:
    if target.endswith(".py") or "/" in target:
        yield from Path(target).resolve().parent.glob("*.py")
        return
    root = Path.cwd() / target.partition(".")[0]
    yield root.with_suffix(".py")
    yield from root.rglob("*.py")


def _mark(path: Path) -> tuple[str, int, int] | None:
    try:
        facts = path.stat()
    except OSError:  # gone, or not to be seen
        return None
    return str(path), facts.st_mtime_ns, facts.st_size
