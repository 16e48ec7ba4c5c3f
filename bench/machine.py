"""What figures were measured on: a number without its machine says nothing."""

import os
import platform
import re
import sys
from datetime import UTC, datetime
from pathlib import Path

import uvloop

from bench.servers import embedded, load_average, unlimited


def machine_facts() -> dict[str, object]:
    """The load is that of the minutes before."""
    load = load_average()
    return {
        "date": datetime.now(UTC).isoformat(timespec="minutes"),
        "cores": os.cpu_count(),
        "processor": _word(Path("/proc/cpuinfo"), "model name"),
        "memory": _word(Path("/proc/meminfo"), "MemTotal"),
        "system": f"{platform.system()} {platform.release()}",
        "python": sys.version.split()[0],
        "postgresql": uvloop.run(_server_version()),
        "load_before": load,
    }


def _word(path: Path, name: str) -> str | None:
    if not path.exists():
        return None
    found = re.search(rf"^{name}\s*:\s*(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else None


async def _server_version() -> str:
    async with embedded() as server, unlimited(server.url) as db:
        return str(await db.fetchval("show server_version"))
