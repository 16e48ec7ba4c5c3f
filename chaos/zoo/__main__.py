"""`python -m chaos.zoo [--only NAME ...] [--list]`: each guard out once; 0 only if all are missed.

First the control: with nothing taken out, every named test passes. Then each broken Foliot in
turn; it is caught if the named test fails, or if the checker finds the named invariant violated.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from chaos.zoo.copying import ROOT, broken_sources, check_cuts
from chaos.zoo.guard import Guard, Invariant, Named
from chaos.zoo.guards import GUARDS

LIMIT_SECONDS: Final = 300.0
# As the report prints it, and as pytest does.
VIOLATED: Final = re.compile(r"^(?P<name>[a-z-]+) .*<-- violated$", re.MULTILINE)
FAILED: Final = re.compile(r"^(FAILED|ERROR) ", re.MULTILINE)


def run(sources: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environ = os.environ | {"PYTHONPATH": f"{sources}{os.pathsep}{ROOT}"}
    return subprocess.run(  # noqa: S603 - our own commands
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )


def run_tests(sources: Path, nodes: Sequence[str]) -> subprocess.CompletedProcess[str]:
    quick = ("-q", "-x", "-p", "no:cacheprovider", "--no-header", "--no-skips")
    return run(sources, "pytest", *quick, *nodes)


def is_caught(catcher: Named | Invariant, sources: Path) -> tuple[bool, str]:
    """Whether it was noticed by whom it should be, and the output."""
    match catcher:
        case Named(node):
            done = run_tests(sources, [node])
            return done.returncode == 1 and bool(FAILED.search(done.stdout)), done.stdout
        case Invariant(name, seed, seconds):
            done = run(sources, "chaos", "--seed", str(seed), "--seconds", str(seconds))
            return name in VIOLATED.findall(done.stdout), done.stdout


def control(guards: Sequence[Guard]) -> bool:
    catchers = {each for guard in guards for each in guard.caught_by}
    nodes = sorted(each.node for each in catchers if isinstance(each, Named))
    if not nodes:
        return True
    with broken_sources(None) as sources:
        done = run_tests(sources, nodes)
    if done.returncode != 0:
        say(done.stdout)
    return done.returncode == 0


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def show(guard: Guard) -> None:
    say(f"{guard.name:34} {guard.why}\n{'':34} caught by {', '.join(map(str, guard.caught_by))}")


def release(guards: Sequence[Guard]) -> int:
    """Each in turn; how many nobody noticed."""
    escaped = 0
    for guard in guards:
        with broken_sources(guard) as sources:
            found = [watch(guard, each, sources) for each in guard.caught_by]
        escaped += not all(found)
    return escaped


def watch(guard: Guard, catcher: Named | Invariant, sources: Path) -> bool:
    """Whether it was caught, which is told."""
    began = time.monotonic()
    caught, output = is_caught(catcher, sources)
    word = "caught " if caught else "ESCAPED"
    say(f"{word} {guard.name:34} {time.monotonic() - began:5.0f} s  by {catcher}")
    if not caught:
        say(output[-3000:])
    return caught


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="guards by name")
    parser.add_argument("--list", action="store_true", help="tell them and do nothing")
    options = parser.parse_args()
    guards = [each for each in GUARDS if not options.only or each.name in options.only]
    if unknown := set(options.only or ()) - {each.name for each in guards}:
        parser.error(f"no such guard: {', '.join(sorted(unknown))}")
    if options.list:
        for guard in guards:
            show(guard)
        return 0
    check_cuts(GUARDS)
    if not control(guards):
        say("With nothing taken out, a named test fails: nothing can be said.")
        return 1
    say("With nothing taken out, all named tests pass.")
    escaped = release(guards)
    say(f"{len(guards) - escaped} of {len(guards)} guards are missed when they are gone.")
    return 1 if escaped else 0


if __name__ == "__main__":
    sys.exit(main())
