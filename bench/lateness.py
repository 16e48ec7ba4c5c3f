"""How late instants fired and their handlers began, from what history says.

A fire is known by when its execution was put into the queue; a start by the handler itself, which
returns the time: the clock of this machine is the database's too.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

import asyncpg

from bench.aims import Figures
from bench.telling import say

CUTS: Final = ("p50", "p99", "most")
LATENESS: Final = """
with runs as materialized (
  select extract(epoch from a.queued_at - a.scheduled_time)::float8 as fired,
         extract(epoch from a.claimed_at - a.scheduled_time)::float8 as claimed,
         (a.result #>> '{}')::float8 - extract(epoch from a.scheduled_time)::float8 as started
    from foliot.attempts a
   where a.scheduled_time >= $1 and a.scheduled_time < $2 and a.trigger = 'SCHEDULE'
     and a.status = 'SUCCEEDED')
select count(*) as number,
       count(*) filter (where least(fired, claimed, started) < 0) as early,
       percentile_disc(array[0.5, 0.99, 1]) within group (order by fired) as fired,
       percentile_disc(array[0.5, 0.99, 1]) within group (order by claimed) as claimed,
       percentile_disc(array[0.5, 0.99, 1]) within group (order by started) as started
  from runs"""


@dataclass(frozen=True, slots=True)
class Lateness:
    """In seconds: p50, p99 and the most of each."""

    number: int
    early: int
    fired: tuple[float, float, float]
    claimed: tuple[float, float, float]
    started: tuple[float, float, float]

    def figures(self) -> dict[str, float]:
        """In milliseconds."""
        stages = {"fire": self.fired, "claim": self.claimed, "start": self.started}
        return {
            f"{stage}_ms_{name}": round(seconds * 1e3, 1)
            for stage, cuts in stages.items()
            for name, seconds in zip(CUTS, cuts, strict=True)
        }


async def read_lateness(db: asyncpg.Connection, low: datetime, high: datetime) -> Lateness:
    """Of the instants from `low` up to and without `high`."""
    row = await db.fetchrow(LATENESS, low, high)
    if row is None or not row["number"]:
        raise RuntimeError(f"nothing has run for an instant from {low} to {high}")
    stages = (tuple(row[name]) for name in ("fired", "claimed", "started"))
    return Lateness(row["number"], row["early"], *stages)


def show_lateness(words: str, figures: Figures) -> None:
    for stage in ("fire", "claim", "start"):
        cuts = "  ".join(f"{cut} {figures[f'{stage}_ms_{cut}']:9,.1f} ms" for cut in CUTS)
        say(f"{words:24} {stage:6} {cuts}")
