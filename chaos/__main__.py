"""The proof as a command: `python -m chaos --seed 1 --seconds 600`.

Prints the seed and the folder of the run, a line every ten seconds, then the report. The exit
status is 0 only if every invariant was checked often enough and held. The folder is removed then,
unless it is to be kept; after a failure it stays, with the database in it.
"""

import argparse
import asyncio
import contextlib
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import uvloop

from chaos.checker import check, demands
from chaos.cluster import Size
from chaos.report import render
from chaos.run import Options, run_all, say
from foliot.runtime.service import run

REPORT_FILE: Final = "report.txt"
FAILED: Final = 1
INTERRUPTED: Final = 130


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("chaos", description="a whole Foliot under faults, checked")
    parser.add_argument("--seed", type=int, default=1, help="of workload and faults")
    parser.add_argument("--seconds", type=float, default=120.0, help="how long faults strike")
    parser.add_argument("--schedulers", type=int, default=3)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--rate", type=float, default=100.0, help="instants a second")
    parser.add_argument("--intensity", type=float, default=1.0, help="2: twice as many faults")
    parser.add_argument("--keep", action="store_true", help="the folder of the run")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = parse(arguments)
    size = Size(chosen.schedulers, chosen.workers)
    options = Options(chosen.seed, chosen.seconds, size, chosen.rate, chosen.intensity)
    folder = make_folder()
    say(f"seed {options.seed}, {options.seconds:g} s, in {folder}")
    try:
        status = run(_prove(options, folder), uvloop.new_event_loop)
    except (KeyboardInterrupt, asyncio.CancelledError):
        shutil.rmtree(folder, ignore_errors=True)
        return INTERRUPTED
    if status == 0 and not chosen.keep:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        say(f"all of it is in {folder}")
    return status


async def _prove(options: Options, folder: Path) -> int:
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    facts = await run_all(options, folder)
    verdicts = check(facts, demands(options.seconds))
    report = render(facts, verdicts)
    (folder / REPORT_FILE).write_text(report, encoding="utf-8")
    say(report)
    return 0 if all(verdict.ok for verdict in verdicts) else FAILED


def make_folder() -> Path:
    """One that the database's own account may enter."""
    folder = Path(tempfile.mkdtemp(prefix="foliot-chaos-"))
    folder.chmod(0o711)
    return folder


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        sys.exit(main())
