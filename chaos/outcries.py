"""What a node says that none should: a stack trace, a task or a coroutine that nobody waited for, a
resource that nobody closed, an error that no fault explains.

That the database is away, slow or locked is told as a warning, and a handler that fails is no error
of the worker: no line with ERROR is to be expected, whatever the faults.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from chaos.facts import Row

OUTCRIES: Final = re.compile(
    r"Traceback|never retrieved|never awaited|ResourceWarning|Fatal Python"
    r"| (?:ERROR|CRITICAL) |^ERROR"
)
# Lines of a trace but the last are indented.
_INDENTED: Final = (" ", "\t")


def read_outcries(folder: Path) -> Iterator[Row]:
    for log in sorted((folder / "nodes").glob("*.log")):
        with log.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if OUTCRIES.search(line):
                    yield {"node": log.stem, "line": line.rstrip("\n") + _end_of_trace(line, lines)}


def _end_of_trace(line: str, lines: Iterator[str]) -> str:
    """What a trace ends with says the most; nothing for any other line."""
    if "Traceback" not in line:
        return ""
    return next((f" {each.rstrip()}" for each in lines if not each.startswith(_INDENTED)), "")
