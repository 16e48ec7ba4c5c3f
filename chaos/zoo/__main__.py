"""`python -m chaos.zoo [--only NAME ...] [--by test|run] [--list]`: each guard out once; 0 only if
all are missed.

First the control: with nothing taken out, every named test passes, and a chaos run finds nothing
against the named invariants. Then each broken Foliot in turn, first those that tests catch.
"""

import argparse
import re
import signal
import sys
import time
from collections.abc import Sequence
from typing import Final

from chaos.zoo.copying import broken_sources, check_cuts
from chaos.zoo.guard import Guard, Invariant, Named
from chaos.zoo.guards import GUARDS
from chaos.zoo.watching import (
    Said,
    check_in_use,
    forget,
    has_verdicts,
    run_chaos,
    run_tests,
    violated,
    watch,
)

KINDS: Final[dict[str, type[Named | Invariant]]] = {"test": Named, "run": Invariant}
INTERRUPTED: Final = 130
BAD: Final = re.compile(r"^(?:FAILED|ERROR) .*", re.MULTILINE)
Case = tuple[Guard, Named | Invariant]


def choose(only: Sequence[str], by: str | None) -> list[Case]:
    """First what tests catch, which takes seconds, then what runs do."""
    return [
        (guard, catcher)
        for name, kind in KINDS.items()
        for guard in GUARDS
        for catcher in guard.caught_by
        if isinstance(catcher, kind) and by in (None, name) and (not only or guard.name in only)
    ]


def control(cases: Sequence[Case]) -> bool:
    """Whether nothing is caught where nothing was taken out."""
    catchers = [catcher for _, catcher in cases]
    nodes = sorted({each.node for each in catchers if isinstance(each, Named)})
    invariants = [each for each in catchers if isinstance(each, Invariant)]
    with broken_sources(None) as sources:
        check_in_use(sources)
        if nodes and (said := run_tests(sources, nodes)).status != 0:
            return refuse(said, "a named test fails")
        for seed, seconds in sorted({(each.seed, each.seconds) for each in invariants}):
            said = run_chaos(sources, seed, seconds)
            if not has_verdicts(said):
                return refuse(said, "a run has no verdict")
            if wrong := {each.name for each in invariants}.intersection(violated(said)):
                return refuse(said, f"a run is against {', '.join(sorted(wrong))}")
            forget(said)
    return True


def refuse(said: Said, reason: str) -> bool:
    tell(said.output)
    say(f"With nothing taken out, {reason}: nothing can be said.")
    return False


def release(cases: Sequence[Case]) -> set[str]:
    """Each in turn; the guards that somebody did not miss who should have."""
    escaped: set[str] = set()
    for guard, catcher in cases:
        began = time.monotonic()
        with broken_sources(guard) as sources:
            check_in_use(sources)
            notice = watch(catcher, sources)
        word = "caught " if notice.caught else "ESCAPED"
        say(f"{word} {guard.name:34} {time.monotonic() - began:5.0f} s  by {catcher}")
        say(f"{'':8}{notice.reason[:200]}")
        if not notice.caught:
            tell(notice.output)
            escaped.add(guard.name)
    return escaped


def show(guard: Guard) -> None:
    say(f"{guard.name:34} {guard.why}\n{'':34} caught by {', '.join(map(str, guard.caught_by))}")


def tell(output: str) -> None:
    """Its end, and whatever failed in it."""
    say(output[-3000:])
    for line in BAD.findall(output):
        say(line)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=(), help="guards by name")
    parser.add_argument("--by", choices=KINDS, help="who catches: named tests, or chaos runs")
    parser.add_argument("--list", action="store_true", help="tell them and do nothing")
    options = parser.parse_args()
    if unknown := set(options.only) - {each.name for each in GUARDS}:
        parser.error(f"no such guard: {', '.join(sorted(unknown))}")
    cases = choose(options.only, options.by)
    names = {guard.name for guard, _ in cases}
    if options.list:
        for guard in GUARDS:
            if guard.name in names:
                show(guard)
        return 0
    # Like Ctrl-C: the copy is removed, and the command that runs on it is ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    began = time.monotonic()
    check_cuts(GUARDS)
    if not control(cases):
        return 1
    say(f"With nothing taken out, nothing is found. {time.monotonic() - began:.0f} s")
    escaped = release(cases)
    minutes = (time.monotonic() - began) / 60
    kept = len(names) - len(escaped)
    say(f"{kept} of {len(names)} guards are missed when they are gone. {minutes:.0f} minutes")
    return 1 if escaped else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
