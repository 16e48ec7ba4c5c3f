"""How fast is each stage of the store, and what do its promises cost? Ours beside the baseline.

    python -m bench.store_stages --jobs 100000 --batch 1000 --repeat 3

Both are measured in the same run, in turns, each time on a fresh server, so that a machine that is
busy is busy for both: the ratio is worth more than the numbers. Medians over the repetitions; the
last line is one JSON object.
"""

import argparse
import asyncio
import json
from collections import defaultdict
from statistics import median

from bench.baseline import Baseline
from bench.contender import Contender
from bench.foliot_store import FoliotStore
from bench.pipeline import measure_drain, measure_pipeline
from bench.servers import load_average
from bench.stages import measure_stages
from bench.telling import run, say

Rates = dict[str, float]


async def measure(contender: Contender, jobs: int, batch: int) -> Rates:
    rates = await measure_stages(contender, jobs, batch)
    for workers in (1, 4):
        rates[f"drain, {workers} w"] = await measure_drain(contender, jobs, batch, workers)
        rates[f"pipeline, {workers} w"] = await measure_pipeline(contender, jobs, batch, workers)
    return rates


async def compare(options: argparse.Namespace) -> None:
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for turn in range(options.repeat):
        contenders: list[Contender] = [FoliotStore(), Baseline()]
        # Who goes first changes, so that a warming or tiring machine favours nobody.
        for contender in contenders if turn % 2 else reversed(contenders):
            for case, rate in (await measure(contender, options.jobs, options.batch)).items():
                found[case][contender.name].append(rate)
            say(f"turn {turn + 1}, {contender.name}: load average {load_average()}")
    report(found, options)


def report(found: dict[str, dict[str, list[float]]], options: argparse.Namespace) -> None:
    say(f"\n{options.jobs:,} jobs, batches of {options.batch:,}, {options.repeat} turns: rows/s")
    say(f"{'':<14}{'foliot':>10}{'baseline':>10}{'ratio':>8}")
    summary = {}
    for case, by_name in found.items():
        ours, bare = median(by_name["foliot"]), median(by_name["baseline"])
        summary[case] = {"foliot": round(ours), "baseline": round(bare)}
        say(f"{case:<14}{ours:>10,.0f}{bare:>10,.0f}{ours / bare:>8.2f}")
    say(json.dumps({"jobs": options.jobs, "batch": options.batch, "rows_per_second": summary}))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="rows/s of the store's stages and pipeline")
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=1_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="20,000 jobs, once: does it work?")
    options = parser.parse_args()
    if options.quick:
        options.jobs, options.repeat = 20_000, 1
    return options


def main() -> int:
    asyncio.run(compare(parse()))
    return 0


if __name__ == "__main__":
    run(main)
