"""Bring a database to the level this Foliot needs, whoever else is trying the same.

Each migration is one transaction under one lock, with its record inside: it happens once, or not
at all. No lock is waited for longer than a second, because a waiting migration makes everyone else
queue behind it; instead the transaction is undone and tried again after a pause. Functions follow
when the tables are there, and the history gets its partitions for the days to come.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, TypeVar

from foliot.runtime.clock import Clock
from foliot.store.connecting import ConnectionOptions, connect, growing_delays
from foliot.store.errors import (
    DatabaseRefused,
    MigrationBlocked,
    StatementFailed,
    TransactionConflict,
)
from foliot.store.function_files import StoredFunction, function_changes, packaged_functions
from foliot.store.install_functions import install_functions, read_installed
from foliot.store.migration_files import AppliedMigration, Migration, packaged_migrations, pending
from foliot.store.partitions import provide_partitions
from foliot.store.safety import missing_safety, set_limit, tell_of_limit
from foliot.store.scripts import SCRIPT_SECONDS, run_file
from foliot.store.session import Session, transaction
from foliot.store.statements import statement

log = logging.getLogger(__name__)
Result = TypeVar("Result")

_HAS_MIGRATIONS: Final = statement("schema/has_migrations")
_LOCK_MIGRATIONS: Final = statement("schema/lock_migrations")
_READ_APPLIED: Final = statement("schema/read_applied")
_RECORD_APPLIED: Final = statement("schema/record_applied")

MIGRATION_LOCK: Final = int.from_bytes(b"foliot", "big")
PATIENCE_SECONDS: Final = 300.0
# Too few statements to be worth preparing, and so any pooler will do.
OPTIONS: Final = ConnectionOptions(prepare=False, application_name="foliot migrate")

NO_PRIVILEGE: Final = "42501"
NOT_THE_OWNER: Final = (
    "connect as the role that owns the schema foliot, or grant that role to this one"
)

# An empty search_path makes every name in a migration a full one. The server asks now and then
# whether its client still lives, where the platform can, so that a killed node's migration ends.
# A transaction's clock that runs already is stopped only by a zero; servers before 17 have none.
LIMITS: Final = f"""
set local search_path = '';
set local lock_timeout = '1s';
set local statement_timeout = '{SCRIPT_SECONDS:.0f}s';
set local idle_in_transaction_session_timeout = '30s';
do $$ begin
  perform pg_catalog.set_config('transaction_timeout', '0', true) from pg_catalog.pg_settings
    where name = 'transaction_timeout';
  begin
    set local client_connection_check_interval = '1s';
  exception when invalid_parameter_value then
    null;
  end;
end $$
"""


@dataclass(frozen=True)
class SchemaStatus:
    """How far a database is, by file name."""

    applied: tuple[str, ...]
    pending: tuple[str, ...]

    @property
    def level(self) -> int:
        return len(self.applied)


async def schema_status(url: str, migrations: Sequence[Migration] | None = None) -> SchemaStatus:
    """What was applied and what is pending; raises what `migrate` would refuse."""
    known = packaged_migrations() if migrations is None else migrations
    async with connect(url, OPTIONS) as session:
        todo = pending(known, await _read_applied(session))
    return SchemaStatus(
        applied=tuple(migration.file for migration in known if migration not in todo),
        pending=tuple(migration.file for migration in todo),
    )


async def migrate(
    url: str,
    clock: Clock,
    *,
    migrations: Sequence[Migration] | None = None,
    functions: Sequence[StoredFunction] = (),
    patience_seconds: float = PATIENCE_SECONDS,
) -> tuple[str, ...]:
    """Apply what is pending and set the role's safety limits; the files applied by this call.

    Migrations given by the caller come with the caller's functions, and without partitions.
    """
    packaged = migrations is None
    known = packaged_migrations() if migrations is None else migrations
    wanted = packaged_functions() if packaged else functions
    applied: list[str] = []
    async with connect(url, OPTIONS) as session:

        async def next_step() -> Migration | None:
            return await _apply_next(session, known)

        while migration := await _despite_locks(next_step, clock, patience_seconds):
            log.info("applied migration %s", migration.file)
            applied.append(migration.file)

        async def function_step() -> tuple[str, ...]:
            return await _follow_functions(session, known, wanted)

        async def safety_step() -> None:
            await _make_safe(session)

        applied += await _despite_locks(function_step, clock, patience_seconds)
        await _despite_locks(safety_step, clock, patience_seconds)
        if packaged:
            await _begin_partitions(session)
    return tuple(applied)


async def _apply_next(session: Session, migrations: Sequence[Migration]) -> Migration | None:
    """One migration further; None when there is none left."""
    if not pending(migrations, await _read_applied(session)):
        return None
    async with _locked(session):
        # Read again under the lock: another node may have been faster.
        todo = pending(migrations, await _read_applied(session))
        if not todo:
            return None
        migration = todo[0]
        await run_file(session, migration.file, migration.script)
        await session.execute(
            _RECORD_APPLIED, migration.version, migration.name, migration.checksum, None
        )
    return migration


async def _follow_functions(
    session: Session, migrations: Sequence[Migration], functions: Sequence[StoredFunction]
) -> tuple[str, ...]:
    """All changed functions in one transaction; their files."""
    if not function_changes(functions, await read_installed(session)):
        return ()
    async with _locked(session):
        # Read again under the lock: another node may have been faster, and a newer one refuses us.
        pending(migrations, await _read_applied(session))
        changes = function_changes(functions, await read_installed(session))
        await install_functions(session, changes)
    for name in changes.gone:
        log.info("dropped function %s", name)
    return tuple(function.file for function in changes.created)


async def _make_safe(session: Session) -> None:
    """Each limit in a transaction of its own: one the platform refuses must not undo the others."""
    for missing in await missing_safety(session):
        try:
            async with _locked(session):
                await set_limit(session, missing)
        except StatementFailed as failure:
            log.warning("%s cannot be set here: %s", missing.name, failure.reason)
        else:
            tell_of_limit(missing)


async def _begin_partitions(session: Session) -> None:
    """One try: a reader who is in the way must keep nobody from starting. A day that is missing
    goes to the default partition until a scheduler makes it."""
    try:
        await provide_partitions(session)
    except TransactionConflict as conflict:
        log.warning("partitions are left for later: %s", conflict.reason)


@asynccontextmanager
async def _locked(session: Session) -> AsyncIterator[None]:
    """A transaction with a migration's limits, in which no other node migrates."""
    async with transaction(session):
        await session.run_script("set limits", LIMITS, timeout_seconds=10.0)
        await session.execute(_LOCK_MIGRATIONS, MIGRATION_LOCK)
        yield


async def _read_applied(session: Session) -> tuple[AppliedMigration, ...]:
    if not await session.fetch_value(_HAS_MIGRATIONS):
        return ()
    try:
        rows = await session.fetch(_READ_APPLIED)
    except StatementFailed as failure:
        if failure.sqlstate != NO_PRIVILEGE:
            raise
        raise DatabaseRefused(session.url, failure.reason, NOT_THE_OWNER) from None
    return tuple(AppliedMigration(**row) for row in rows)


async def _despite_locks(
    step: Callable[[], Awaitable[Result]], clock: Clock, patience_seconds: float
) -> Result:
    """The step, tried again while others are in its way, until our patience ends."""
    began = clock.monotonic()
    delays = growing_delays()
    while True:
        try:
            return await step()
        except TransactionConflict as conflict:
            waited, delay = clock.monotonic() - began, next(delays)
            if waited + delay > patience_seconds:
                raise MigrationBlocked(waited, conflict.reason) from conflict
            log.info("migration waits: %s", conflict.reason)
        await clock.sleep(delay)
