"""Output cut to size: into lines, at a line's length, at an attempt's sum."""

from typing import Final

LINE_CHARS_MAX: Final = 16 * 1024
OUTPUT_BYTES_MAX: Final = 10 * 1024 * 1024
CUT: Final = " … (cut)"
# What a line costs beside its text: a flood of empty lines is a flood too.
_LINE_BYTES: Final = 128


def cost(text: str) -> int:
    return len(text) + _LINE_BYTES if text.isascii() else len(text.encode()) + _LINE_BYTES


class Cutter:
    """Text in pieces to whole lines; of an endless line only the beginning is held."""

    def __init__(self) -> None:
        self._held = ""
        self._is_cut = False  # the rest of the held line is thrown away

    def feed(self, text: str) -> list[str]:
        first, *others = text.split("\n") if "\n" in text else (text,)
        self._hold(first)
        lines: list[str] = []
        for other in others:
            lines.append(self._take())
            self._hold(other)
        return lines

    def rest(self) -> list[str]:
        """The line that was begun and not ended."""
        return [self._take()] if self._held else []

    def _hold(self, text: str) -> None:
        if self._is_cut:
            return
        room = LINE_CHARS_MAX - len(CUT) - len(self._held)
        self._is_cut = len(text) > room
        self._held += text[:room] + CUT if self._is_cut else text

    def _take(self) -> str:
        line, self._held, self._is_cut = self._held, "", False
        return line.removesuffix("\r")
