"""A copy of the sources without one guard."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from chaos.zoo.guard import Cut, Guard

ROOT: Final = Path(__file__).parents[2]
PRODUCT: Final = Path("src") / "foliot"


class CutDoesNotFit(Exception):
    """The sources have changed: the cut must be written anew."""

    def __init__(self, cut: Cut, places: int) -> None:
        super().__init__(f"{cut.file} has {places} places that read {cut.old!r}, not one")


def apply(cut: Cut, text: str) -> str:
    places = text.count(cut.old)
    if places != 1:
        raise CutDoesNotFit(cut, places)
    return text.replace(cut.old, cut.new)


def check_cuts(guards: tuple[Guard, ...]) -> None:
    """Every cut fits the sources as they are, before anything takes its time."""
    for guard in guards:
        for cut in guard.cuts:
            apply(cut, (ROOT / PRODUCT / cut.file).read_text(encoding="utf-8"))


@contextmanager
def broken_sources(guard: Guard | None) -> Iterator[Path]:
    """A folder to put first in PYTHONPATH; without a guard, the sources as they are."""
    with tempfile.TemporaryDirectory(prefix="foliot-zoo-") as folder:
        place = Path(folder)
        place.chmod(0o755)
        without = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / PRODUCT, place / "foliot", ignore=without)
        for cut in guard.cuts if guard else ():
            file = place / "foliot" / cut.file
            file.write_text(apply(cut, file.read_text(encoding="utf-8")), encoding="utf-8")
        yield place
