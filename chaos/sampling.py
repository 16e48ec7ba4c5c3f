"""The health of the whole, looked at every other second for as long as the run lasts."""

import asyncio
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from chaos.asking import APPLICATION, Asker
from chaos.facts import Row, Sample
from chaos.node import Node
from chaos.record import Recorder

EVERY_SECONDS: Final = 2.0
PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
# Of sessions with an open transaction only the product's own: a snapshot that is pinned is ours.
HEALTH: Final = f"""
select clock_timestamp() as at,
       (select count(*) from pg_stat_activity where backend_type = 'client backend') as connections,
       (select coalesce(max(extract(epoch from clock_timestamp() - a.state_change)), 0)
          from pg_stat_activity a
         where a.state like 'idle in transaction%' and a.application_name <> '{APPLICATION}')
         as idle_in_transaction_seconds,
       (select count(*) from foliot.shard_leases
         where owner is not null and expires_at > clock_timestamp()) as owned_shards,
       (select count(*) from foliot.executions) as live_rows
"""  # noqa: S608 - our own constant


async def sample_until(
    stop: asyncio.Event, asker: Asker, nodes: Iterable[Node], recorder: Recorder
) -> None:
    while not stop.is_set():
        (health,) = await asker.fetch(HEALTH)
        recorder.sample(
            Sample(
                monotonic=time.monotonic(),
                at=health["at"],
                nodes={node.name: vitals(node.pid) for node in nodes if node.is_alive},
                connections=health["connections"],
                idle_in_transaction_seconds=float(health["idle_in_transaction_seconds"]),
                owned_shards=health["owned_shards"],
                live_rows=health["live_rows"],
            )
        )
        await asyncio.sleep(EVERY_SECONDS)


def vitals(pid: int) -> Row:
    """How much memory it has and how many files are open; nothing of one that has just ended."""
    process = Path(f"/proc/{pid}")
    try:
        pages = int((process / "statm").read_text(encoding="ascii").split()[1])
        descriptors = len(list((process / "fd").iterdir()))
    except OSError:
        return {"pid": pid, "rss_bytes": 0, "descriptors": 0}
    return {"pid": pid, "rss_bytes": pages * PAGE_BYTES, "descriptors": descriptors}
