"""What `foliot up` says when all is ready: what runs where, and what to try."""

import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from foliot import __version__
from foliot.runtime.key_file import KEY_FILE


@dataclass(frozen=True, slots=True)
class Facts:
    """`own_key`: the operator's key is the folder's, not one from the environment."""

    url: str
    data_dir: Path
    database: str
    handlers: tuple[str, ...]
    own_key: bool


def greeting(facts: Facts) -> list[str]:
    key_file = shlex.quote(str(facts.data_dir / KEY_FILE))
    key = f"$(cat {key_file})" if facts.own_key else "$FOLIOT_API_KEY"
    data = shlex.quote(str(facts.data_dir))
    handlers = " ".join(facts.handlers) or "no handlers: name a module that has some"
    return [
        f"Foliot {__version__} is ready.",
        "",
        f"  API         {facts.url}",
        f"  API key     {f'in {key_file}' if facts.own_key else 'the one of FOLIOT_API_KEY'}",
        f"  PostgreSQL  {facts.database}",
        "  Scheduler   runs",
        f"  Worker      runs HTTP targets; {handlers}",
        "",
        "Try in another terminal:",
        f"  curl {facts.url}/readyz",
        f'  curl -H "Authorization: Bearer {key}" {facts.url}/v1/jobs',
        f"  {command()} db status --data-dir {data}",
        "",
        "Ctrl-C stops everything; the data stays.",
    ]


def command() -> str:
    """How this user calls us."""
    if shutil.which("foliot"):
        return "foliot"
    called = sys.argv[0]
    return called if called.endswith("/foliot") else f"{sys.executable} -m foliot"
