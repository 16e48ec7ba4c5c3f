"""Drain of a full queue of jobs that do nothing, ours beside PgQueuer, Procrastinate,
graphile-worker and River.

    python -m bench.peers                            # three turns, about four minutes
    python -m bench.peers --repeat 1 --only graphile

What must be installed first is put into `.bench/`. The last line is one JSON object; a ratio is
ours by theirs, null where a peer could not be run.
"""

import argparse
from typing import Final

import uvloop

from bench.peers.drain import ENTRANTS, measure
from bench.telling import conclude, run, say

QUICK_PART: Final = 4


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="a fourth, once: does it work?")
    names = [entrant.name for entrant in ENTRANTS]
    parser.add_argument("--only", nargs="*", default=[], choices=names, metavar="NAME")
    options = parser.parse_args()
    turns, part = (1, QUICK_PART) if options.quick else (options.repeat, 1)
    figures = uvloop.run(measure(turns, options.only, part))
    for line in ("", *figures.table()):
        say(line)
    return conclude("drain", figures.as_json())


if __name__ == "__main__":
    run(main)
