"""Writes the state diagrams into docs/reference/states.md, from the tables in foliot.core.states.

Run it after a change to a table: `.venv/bin/python docs/generate_states.py`. With `--check` it
writes nothing and exits with 1 if the page is out of date. Only what stands between the markers
is generated; the prose around it is written by hand.
"""

import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from foliot.core.states import DAG_RUN, EXECUTION, JOB, WORKER

PAGE: Final = Path(__file__).parent / "reference" / "states.md"
Table = Mapping[tuple[Any, Any], StrEnum]
MACHINES: Final[Mapping[str, tuple[Table, tuple[str, ...]]]] = {
    "execution": (EXECUTION, ("PENDING", "WAITING", "QUEUED")),
    "job": (JOB, ("ACTIVE",)),
    "worker": (WORKER, ("ACTIVE",)),
    "dag-run": (DAG_RUN, ("PENDING",)),
}


def diagram(table: Table, initial: tuple[str, ...]) -> str:
    """A Mermaid diagram: where it begins, every transition in table order, where it ends."""
    ends = dict.fromkeys(to for to in table.values() if to not in {state for state, _ in table})
    lines = [
        "stateDiagram-v2",
        *(f"    [*] --> {state}" for state in initial),
        *(f"    {state} --> {to}: {event}" for (state, event), to in table.items()),
        *(f"    {state} --> [*]" for state in ends),
    ]
    return "\n".join(["```mermaid", *lines, "```"])


def render(page: str) -> str:
    """`page` with a fresh diagram between each machine's markers."""
    for name, (table, initial) in MACHINES.items():
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        if page.count(begin) != 1 or page.count(end) != 1:
            raise SystemExit(f"{PAGE} must have one {begin} and one {end}")
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(end)
        page = f"{before}{begin}\n{diagram(table, initial)}\n{end}{after}"
    return page


def main() -> int:
    old = PAGE.read_text(encoding="utf-8")
    new = render(old)
    if "--check" in sys.argv[1:]:
        return int(new != old)
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
