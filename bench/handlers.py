"""Attempts per second that the processes of handlers make, without a database.

`python -m bench.handlers`: handlers that do nothing, on a shared loop and in processes of their
own, and what one attempt costs the worker's own process. Both sides share this machine's cores.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import uvloop

from foliot.testing.handlers import a_task
from foliot.worker.hosts.pool import HostLimits
from foliot.worker.hosts.runner import HandlerRunner
from foliot.worker.tasks import LogRecord, Succeeded, Task

HANDLERS = Path(__file__).with_name("idle_handlers.py")


class Deaf:
    def started(self, task: Task) -> None: ...

    def logged(self, task: Task, records: Sequence[LogRecord]) -> None: ...

    def progressed(self, task: Task, percent: float | None, message: str) -> None: ...


async def measure(handler: str, count: int, at_once: int) -> str:
    runner = HandlerRunner([str(HANDLERS)], limits=HostLimits(idle=at_once))
    await runner.start()
    deaf = Deaf()
    warm = [runner.run(a_task(handler), deaf) for _ in range(min(at_once, 8))]
    await asyncio.gather(*warm)
    tasks = iter([a_task(handler) for _ in range(count)])

    async def lane() -> None:
        for task in tasks:
            ended = await runner.run(task, deaf)
            if not isinstance(ended, Succeeded):
                raise SystemExit(f"not as it should end: {ended}")

    began, began_cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(lane() for _ in range(at_once)))
    seconds, cpu = time.perf_counter() - began, time.process_time() - began_cpu
    await runner.close(grace_seconds=0)
    per_second, cost = count / seconds, cpu / count * 1e6
    return f"{handler:12} {per_second:10,.0f}/s {cost:8.1f} µs of the worker's own process"


async def measure_all(count: int) -> None:
    for handler, share, at_once in (("on_loop", 1, 1000), ("in_process", 6, 4), ("apart", 6, 4)):
        sys.stdout.write(f"{await measure(handler, count // share, at_once)}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=60_000)
    uvloop.run(measure_all(parser.parse_args().count))


if __name__ == "__main__":
    main()
