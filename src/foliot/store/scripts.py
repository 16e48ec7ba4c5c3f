"""Files of the schema, run whole: what fails in one is told by file and line."""

from typing import Final

from foliot.store.errors import MigrationFailed, StatementFailed
from foliot.store.session import Session

SCRIPT_SECONDS: Final = 600.0


async def run_file(session: Session, file: str, script: str) -> None:
    """The server gives up first, after `SCRIPT_SECONDS`; the client a little later."""
    try:
        await session.run_script(file, script, timeout_seconds=SCRIPT_SECONDS + 10)
    except StatementFailed as failure:
        line = None
        if failure.position is not None:
            line = script.count("\n", 0, failure.position - 1) + 1
        raise MigrationFailed(file, failure.reason, line, failure.hint) from failure
