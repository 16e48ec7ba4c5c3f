"""What an item of the benchmarks says: lines for people, and as its last line the figures as JSON.

An item that is told to stop, by Ctrl-C or by SIGTERM, ends what it has started before it goes.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from statistics import median, quantiles
from typing import Final, NoReturn

from bench.aims import Figures, judge
from foliot.runtime.family import die_with_parent

# Set by whoever runs all items: then an item does not outlive that process.
PARENT: Final = "BENCH_PARENT"


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def conclude(item: str, figures: Figures) -> int:
    """The exit status: 1 if something falls short of what is wanted."""
    verdicts = judge(item, figures)
    for verdict in verdicts:
        say(f"{'ok ' if verdict.good else 'BAD'} {verdict}")
    say(json.dumps(figures))
    return 0 if all(verdict.good for verdict in verdicts) else 1


def spread(numbers: Sequence[float], name: str, *, digits: int = 1) -> dict[str, float]:
    """`name`_p50, `name`_p99 and `name`_most."""
    high = quantiles(numbers, n=100, method="inclusive")[98]
    found = {"p50": median(numbers), "p99": high, "most": max(numbers)}
    return {f"{name}_{what}": round(value, digits) for what, value in found.items()}


def run(main: Callable[[], int]) -> NoReturn:
    """An item as a process."""
    # Whoever starts us in the background may have had Ctrl-C ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
    if parent := os.environ.get(PARENT):
        die_with_parent(int(parent), signal.SIGTERM)
    sys.exit(main())
