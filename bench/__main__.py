"""All benchmarks, one after another: what was wanted beside what was reached.

    python -m bench                                   # everything: some 25 minutes on 2 quiet cores
    python -m bench --quick                           # does everything run? tiny numbers
    python -m bench --only herd,growth --herd 500000 --definitions 10000000

Each item is a process of its own, `python -m bench.<item>`, whose last line is its figures. A table
follows, and as the very last line one JSON object with all figures. An item that cannot be measured
stops no other; the exit status is then 1. Falling short of what is wanted is told, and no failure.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from bench.aims import AIMS, Figures, judge, number
from bench.machine import machine_facts
from bench.telling import PARENT, run, say
from foliot.runtime.family import adopt_orphans, end_strays

# After it was told to stop: processes leave, a server shuts down.
GRACE_SECONDS: Final = 60.0
PAUSE_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Item:
    """`python -m command`; the flag that makes it larger, and how long it may take at most."""

    command: tuple[str, ...]
    limit_seconds: float = 300.0
    flag: str | None = None


ITEMS: Final = {
    "pipeline": Item(("bench.pipeline",), 600.0),
    "drain": Item(("bench.peers",), 900.0),
    "herd": Item(("bench.herd",), 900.0, "--jobs"),
    "precision": Item(("bench.precision",)),
    "trigger": Item(("bench.trigger_to_start", "--kinds", "trigger")),
    "callbacks": Item(("bench.callbacks",)),
    "growth": Item(("bench.growth",), 3600.0, "--many"),
    "pinned": Item(("bench.soak", "--pinned", "--minutes", "5"), 600.0),
    "memory": Item(("bench.memory",)),
    "running": Item(("bench.running",)),
    "rolling": Item(("bench.rolling",)),
}


def measure(item: Item, options: Sequence[str]) -> dict[str, Any]:
    """The figures; or, under `failed`, why there are none."""
    process = subprocess.Popen(  # noqa: S603 - our own
        [sys.executable, "-m", *item.command, *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {PARENT: str(os.getpid())},
        # Ctrl-C reaches only us: it is passed on once, so that an item ends what it has started.
        start_new_session=True,
    )
    lines: list[str] = []
    # A thread: what an item has left behind may hold its output open.
    reading = threading.Thread(target=_read, args=(process.stdout or (), lines), daemon=True)
    reading.start()
    try:
        with suppress(subprocess.TimeoutExpired):
            process.wait(item.limit_seconds)
    finally:
        status = _end(process)
    reading.join(GRACE_SECONDS)
    last = lines[-1] if lines else ""
    return figures_of(last) or {"failed": f"exit status {status}: {last}"}


def _read(output: Iterable[str], lines: list[str]) -> None:
    """Everything is shown but the figures."""
    for line in filter(None, map(str.rstrip, output)):
        lines.append(line)
        if not line.startswith("{"):
            say(f"  {line}")


def figures_of(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _end(process: subprocess.Popen[str]) -> int:
    """It and whatever it has left; the exit status."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
    process.kill()
    status = process.wait()
    end_strays()
    return status


def table(found: Figures) -> Iterator[str]:
    """A line for each figure that somebody asks for."""
    yield f"{'':10} {'':50} {'wanted':>24} {'reached':>12}"
    for item, figures in found.items():
        if "failed" in figures:
            yield f"{item:10} could not be measured: {figures['failed']}"
        elif item in AIMS:
            for verdict in judge(item, figures):
                aim, good = verdict.aim, "" if verdict.good else "  BAD"
                shown = f"{aim.words:50} {aim.wanted:>24} {number(verdict.reached):>12}{good}"
                yield f"{item:10} {shown}"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="all benchmarks")
    parser.add_argument("--only", help=f"some of {','.join(ITEMS)}")
    parser.add_argument("--quick", action="store_true", help="tiny numbers: does it all run?")
    parser.add_argument("--herd", type=int, help="jobs of one instant (50,000)")
    parser.add_argument("--definitions", type=int, help="of the large side of growth (1,000,000)")
    told = parser.parse_args()
    told.items = told.only.split(",") if told.only else list(ITEMS)
    if unknown := set(told.items) - set(ITEMS):
        parser.error(f"no such item: {', '.join(sorted(unknown))}")
    return told


def main() -> int:
    told = parse()
    adopt_orphans()
    larger = {"herd": told.herd, "growth": told.definitions}
    found: dict[str, Any] = {"machine": machine_facts()}
    say(json.dumps(found["machine"]))
    for name in told.items:
        item, began = ITEMS[name], time.monotonic()
        options = ["--quick"] if told.quick else []
        if item.flag and larger[name]:
            options += [item.flag, str(larger[name])]
        say(f"{name}: python -m {' '.join([*item.command, *options])}")
        found[name] = measure(item, options) | {"took_s": round(time.monotonic() - began)}
        time.sleep(PAUSE_SECONDS)
    say("")
    for line in table(found):
        say(line)
    say(json.dumps(found))
    return 1 if any("failed" in figures for figures in found.values()) else 0


if __name__ == "__main__":
    run(main)
