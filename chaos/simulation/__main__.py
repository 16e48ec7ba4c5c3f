"""`python -m chaos.simulation --seeds 100000`: many worlds; `--seed 7 --trace`: one, in full.

Stops at the first that fails and says which it was. `--keep` notes it among those that are run for
ever after.
"""

import sys
from collections import Counter
from pathlib import Path
from time import monotonic
from typing import Final

import click

from chaos.simulation.run import Failed, run_seed

KEPT: Final = Path(__file__).parents[2] / "tests" / "simulation" / "failing_seeds.txt"
SAY_SECONDS: Final = 10.0


@click.command()
@click.option("--seeds", default=1000, show_default=True, help="How many worlds.")
@click.option("--first", default=0, show_default=True, help="The number of the first.")
@click.option("--seed", type=int, help="Only this one.")
@click.option("--trace", is_flag=True, help="Every event of it.")
@click.option("--keep", is_flag=True, help="Note the numbers that fail, and go on.")
def main(seeds: int, first: int, seed: int | None, *, trace: bool, keep: bool) -> None:
    """Simulate."""
    if seed is not None:
        first, seeds = seed, 1
    say = click.echo if trace else None
    began = said = monotonic()
    counts: Counter[str] = Counter()
    failed = 0
    for number in range(first, first + seeds):
        try:
            result = run_seed(number, say)
        except Failed as error:
            click.echo(str(error), err=True)
            failed += 1
            if not keep:
                sys.exit(1)
            with KEPT.open("a", encoding="utf-8") as file:
                file.write(f"{number}  # {error.why.splitlines()[0]}\n")
            continue
        counts += result.counts
        counts.update(worlds=1, events=result.events, commits=result.commits)
        if monotonic() - said > SAY_SECONDS:
            said = monotonic()
            click.echo(f"{number - first + 1} worlds in {said - began:.0f} s")
    told = ", ".join(f"{word} {count}" for word, count in sorted(counts.items()))
    click.echo(f"{monotonic() - began:.1f} s: {told}; {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
