"""What is wanted of each item of the benchmarks, and how that compares with what was reached.

A figure is named by the way to it in the item's JSON: `workers.4.per_s`. One without a bound is
shown and not judged. All are for two quiet cores.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

Figures = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Aim:
    """`least` or `most` of `figure`; or, where the machine is slower, `instead` of another one."""

    figure: str
    words: str
    least: float | None = None
    most: float | None = None
    instead: tuple[str, float] | None = None

    @property
    def wanted(self) -> str:
        bound = self.least if self.least is not None else self.most
        if bound is None:
            return "-"
        words = f"{'>=' if self.least is not None else '<='} {number(bound)}"
        return f"{words} or {self.instead[1]:g} of bare" if self.instead else words

    def holds(self, figures: Figures) -> bool:
        if self.least is None and self.most is None:
            return True
        if self.instead is not None:
            other = find(figures, self.instead[0])
            if other is not None and other >= self.instead[1]:
                return True
        reached = find(figures, self.figure)
        if reached is None:
            return False
        return (self.least is None or reached >= self.least) and (
            self.most is None or reached <= self.most
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    aim: Aim
    reached: float | None
    good: bool

    def __str__(self) -> str:
        return f"{self.aim.words}: {number(self.reached)} (wanted {self.aim.wanted})"


AIMS: Final[Mapping[str, tuple[Aim, ...]]] = {
    "pipeline": tuple(
        Aim(
            f"workers.{workers}.per_s",
            f"executions/s, {workers} worker{'s' * (workers > 1)}",
            least=least,
            instead=(f"workers.{workers}.ratio_baseline", 0.9) if least else None,
        )
        for workers, least in ((1, 14_000), (2, None), (4, 11_000))
    ),
    "drain": (
        Aim("per_s", "executions/s"),
        Aim("ratio_graphile", "beside graphile-worker", least=1.5),
        Aim("ratio_pgqueuer", "beside PgQueuer", least=2.5),
        Aim("ratio_procrastinate", "beside Procrastinate"),
        Aim("ratio_river", "beside River"),
    ),
    "herd": (
        Aim("last_start_s", "until the last has started, s", most=5.0),
        Aim("last_fire_s", "until the last has fired, s"),
        Aim("start_ms_p99", "lateness of a start, p99, ms"),
        Aim("early", "early", most=0),
        Aim("missing", "missing", most=0),
    ),
    "precision": (
        Aim("fire_ms_p99", "lateness of a fire, p99, ms", most=100),
        Aim("start_ms_p99", "lateness of a start, p99, ms", most=100),
        Aim("spread.start_ms_p99", "the same, instants spread over the second", most=100),
        Aim("early", "early", most=0),
        Aim("missing", "missing", most=0),
    ),
    "trigger": (
        Aim("ms_p50", "request to start, p50, ms", most=15),
        Aim("ms_p99", "request to start, p99, ms", most=60),
    ),
    "callbacks": (
        Aim("per_s", "callbacks/s", least=2_500),
        Aim("ratio_bare", "beside a bare client"),
    ),
    "growth": (
        Aim("tick_ratio", "a tick among many definitions to one among few", most=1.3),
        Aim("claim_ratio", "a claim, the same", most=1.3),
    ),
    "pinned": (
        Aim("claim_p50_ratio", "claim p50, last to first minute", most=1.10),
        Aim("kept", "finished of what was asked", least=0.9),
    ),
    "soak": (
        Aim("claim_p50_ratio", "claim p50, last to first minute", most=1.10),
        Aim("claim_p99_ratio", "claim p99, last to first minute", most=2.2),
        Aim("kept", "finished of what was asked", least=0.95),
        Aim("bytes_ratio", "table and indexes, last to first minute", most=1.25),
    ),
    "memory": (
        Aim("rest.scheduler_mb", "scheduler at rest, MB"),
        Aim("rest.worker_mb", "worker with its hosts at rest, MB"),
        Aim("rest.api_mb", "API at rest, MB"),
        Aim("load.scheduler_mb", "scheduler under load, MB"),
        Aim("load.worker_mb", "worker with its hosts under load, MB"),
        Aim("load.api_mb", "API under load, MB"),
    ),
    "running": (
        Aim("at_once", "running at one moment"),
        Aim("not_at_once", "of those wanted, not at that moment", most=0),
        Aim("not_succeeded", "not succeeded", most=0),
        Aim("seconds_to_all", "until all of them run, s"),
        Aim("beat_age_s_most", "oldest sign of life of a worker, s", most=15),
    ),
    "rolling": (
        Aim("gaps", "jobs with a missed or doubled instant", most=0),
        Aim("skipped", "instants skipped", most=0),
        Aim("lost", "enqueues lost or done twice", most=0),
        Aim("start_ms_most", "longest lateness of a start, ms"),
    ),
}


def judge(item: str, figures: Figures) -> list[Verdict]:
    return [
        Verdict(aim, find(figures, aim.figure), aim.holds(figures)) for aim in AIMS.get(item, ())
    ]


def find(figures: Figures, way: str) -> float | None:
    found: Any = figures
    for name in way.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, int | float) else None


def number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:,.2f}"
