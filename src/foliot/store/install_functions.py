"""Give a database the functions of the files, all of them in the caller's transaction.

Functions call each other, so they are first created unchecked, in any order, and then once more
with their bodies checked: a mistake is found here and not at the first call.
"""

from typing import Final

from foliot.store.errors import MigrationFailed, StatementFailed
from foliot.store.function_files import FunctionChanges, InstalledFunction
from foliot.store.scripts import run_file
from foliot.store.session import Session
from foliot.store.statements import statement

_READ_FUNCTIONS: Final = statement("schema/read_functions")
_READ_DROPS: Final = statement("schema/read_drops")
_RECORD_FUNCTION: Final = statement("schema/record_function")
_FORGET_FUNCTIONS: Final = statement("schema/forget_functions")

DROP_SECONDS: Final = 10.0


async def read_installed(session: Session) -> tuple[InstalledFunction, ...]:
    return tuple(InstalledFunction(**row) for row in await session.fetch(_READ_FUNCTIONS))


async def install_functions(session: Session, changes: FunctionChanges) -> None:
    await _drop(session, changes.dropped)
    await session.execute(_FORGET_FUNCTIONS, list(changes.gone))
    for check in ("off", "on"):
        setting = f"set local check_function_bodies = {check}"
        await session.run_script("set limits", setting, timeout_seconds=DROP_SECONDS)
        for function in changes.created:
            await run_file(session, function.file, function.script)
    for function in changes.created:
        await session.execute(
            _RECORD_FUNCTION, function.name, function.checksum, function.signature, None
        )


async def _drop(session: Session, names: tuple[str, ...]) -> None:
    """Every overload of these names: one left behind could make a call ambiguous."""
    for row in await session.fetch(_READ_DROPS, list(names)):
        try:
            await session.run_script("drop", row["script"], timeout_seconds=DROP_SECONDS)
        except StatementFailed as failure:
            raise MigrationFailed(
                f"functions/{row['name']}.sql", failure.reason, hint=failure.hint
            ) from failure
