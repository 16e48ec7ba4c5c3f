"""How long somebody waits on an idle system: from a request to the first line of the handler.

    python -m bench.trigger_to_start                # 200 triggers, 50 of each other kind
    python -m bench.trigger_to_start --polling      # without hints: as behind a pooler

The processes that `foliot up` starts, on this machine, fsync on; requests over HTTP, one at a
time, with pauses of chance between them, so that everyone is idle when the next one comes. Measured
by the clock that all processes share, from before the request is sent.
"""

import argparse
import http.client
import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from bench.nodes import until_ready
from bench.servers import load_average, migrated_apart
from bench.telling import conclude, run, say, spread
from foliot.testing.engine import Engine

HANDLERS: Final = Path(__file__).with_name("starting_handlers.py")
KEY: Final = "the-key-of-the-operator"
OVER: Final = {"SUCCEEDED", "FAILED", "CANCELLED", "TIMED_OUT"}
Body = dict[str, Any]


class Visitor:
    """One connection, kept open."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._line = http.client.HTTPConnection(parts.hostname or "", parts.port)

    def ask(self, method: str, path: str, body: object = None) -> Body:
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
        self._line.request(method, f"/v1{path}", json.dumps(body or {}), headers)
        answer = self._line.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {text.decode()}")
        found: Body = json.loads(text)
        return found

    def make_job(self, name: str, handler: str, schedule: object, **fields: object) -> str:
        target = {"type": "HANDLER", "name": handler}
        body = {"name": name, "schedule": schedule, "target": target} | fields
        return str(self.ask("POST", "/jobs", body)["job_id"])

    def enqueue(self, job: str) -> str:
        return str(self.ask("POST", "/executions", {"job": job})["execution_id"])

    def ended(self, execution_id: str) -> Body:
        while True:
            found = self.ask("GET", f"/executions/{execution_id}")
            if found["status"] in OVER:
                return found
            time.sleep(0.05)

    def only_run(self, job: str) -> Body:
        while not (runs := self.ask("GET", f"/jobs/{job}/executions")["items"]):
            time.sleep(0.05)
        return self.ended(runs[0]["execution_id"])


MANUAL: Final = {"type": "MANUAL"}


def trigger(visitor: Visitor, number: int) -> float:
    if number == 0:
        visitor.make_job("triggered", "tell", MANUAL)
        idle()
    sent = time.monotonic()
    execution = visitor.enqueue("triggered")
    return float(visitor.ended(execution)["result"]) - sent


def immediate(visitor: Visitor, number: int) -> float:
    """A new job that is due at once."""
    sent = time.monotonic()
    job = visitor.make_job(f"immediate-{number}", "tell", {"type": "IMMEDIATE"})
    return float(visitor.only_run(job)["result"]) - sent


def new_lane(visitor: Visitor, number: int) -> float:
    """The first execution in a queue that nobody has heard of."""
    job = visitor.make_job(f"lane-{number}", "tell", MANUAL, queue=f"queue-{number}")
    idle()
    sent = time.monotonic()
    execution = visitor.enqueue(job)
    return float(visitor.ended(execution)["result"]) - sent


def after(visitor: Visitor, number: int) -> float:
    """From the begin of a parent that does nothing to that of its child."""
    if number == 0:
        visitor.make_job("parent", "tell", MANUAL)
    schedule = {"type": "AFTER", "after": {"jobs": ["parent"], "on": "SUCCEEDED"}}
    child = visitor.make_job(f"child-{number}", "tell", schedule)
    idle()
    began = float(visitor.ended(visitor.enqueue("parent"))["result"])
    found = float(visitor.only_run(child)["result"]) - began
    visitor.ask("DELETE", f"/jobs/{child}")
    return found


def limited(visitor: Visitor, number: int) -> float:
    """From the end of the one that had the slot to the begin of the one that waited for it."""
    if number == 0:
        visitor.make_job("one at a time", "hold", MANUAL, concurrency={"limit": 1})
    runs = [visitor.enqueue("one at a time") for _ in range(2)]
    first, second = sorted(visitor.ended(run)["result"] for run in runs)
    return float(second[0]) - float(first[1])


def cancel(visitor: Visitor, number: int) -> float:
    if number == 0:
        visitor.make_job("lingering", "linger", MANUAL)
    execution = visitor.enqueue("lingering")
    while not visitor.ask("GET", f"/executions/{execution}").get("started_at"):
        time.sleep(0.05)
        if visitor.ask("GET", f"/executions/{execution}")["status"] == "RUNNING":
            break
    idle()
    sent = time.monotonic()
    visitor.ask("POST", f"/executions/{execution}/cancel")
    visitor.ended(execution)
    while not (lines := visitor.ask("GET", f"/executions/{execution}/logs")["items"]):
        time.sleep(0.05)
    return float(lines[-1]["message"]) - sent


def idle() -> None:
    """For a while, so that whoever can go to sleep has."""
    time.sleep(random.uniform(0.1, 1.2))  # noqa: S311 - no secret


KINDS: Final[dict[str, tuple[Callable[[Visitor, int], float], float]]] = {
    "trigger": (trigger, 1.0),
    "immediate": (immediate, 0.25),
    "new_lane": (new_lane, 0.15),
    "after": (after, 0.15),
    "limited": (limited, 0.15),
    "cancel": (cancel, 0.15),
}


@contextmanager
def stack(*, polling: bool) -> Iterator[str]:
    """The address of a whole Foliot."""
    told = {"FOLIOT_API_KEY": KEY}
    if polling:
        told["FOLIOT_DATABASE_POOLER"] = "transaction"
    with migrated_apart() as server:
        engine = Engine(server.url, server.home, HANDLERS)
        with (
            engine.api(**told) as api,
            engine.scheduler(**told) as scheduler,
            engine.worker("--queues", "*", **told) as worker,
        ):
            until_ready([scheduler], [worker])
            yield api.line_with("listening on ").rpartition(" ")[2]


def measure(visitor: Visitor, kind: str, count: int) -> dict[str, float]:
    """In milliseconds."""
    ask, _ = KINDS[kind]
    found: list[float] = []
    ask(visitor, 0)  # the first one also makes what the others need
    for number in range(1, count + 1):
        idle()
        found.append(ask(visitor, number) * 1e3)
    figures = spread(found, "ms")
    shown = "  ".join(f"{name} {value:7.1f}" for name, value in figures.items())
    say(f"{kind:10} n {count:>4}  {shown}  load {load_average()}")
    return {"count": count} | figures


def main() -> int:
    parser = argparse.ArgumentParser(description="from a request to the start of its handler")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--polling", action="store_true", help="without hints")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--quick", action="store_true", help="10 triggers: does it work?")
    options = parser.parse_args()
    if options.quick:
        options.count, options.kinds = 10, ["trigger"]
    found: dict[str, dict[str, float]] = {}
    with stack(polling=options.polling) as url:
        visitor = Visitor(url)
        for kind in options.kinds:
            count = max(5, round(options.count * KINDS[kind][1]))
            found[kind] = measure(visitor, kind, count)
    return conclude("trigger", found.pop("trigger", {}) | found)


if __name__ == "__main__":
    run(main)
