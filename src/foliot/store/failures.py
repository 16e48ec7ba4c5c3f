"""From the driver's many exceptions to our few, in one place.

What matters is not what went wrong but what may be done about it, and that depends on the moment:
a connection lost inside a transaction has changed nothing, the same loss while a commit is on its
way leaves its outcome open.
"""

import os
import ssl
from collections.abc import Iterator
from typing import Final

import asyncpg

from foliot.store.errors import (
    CommitUnknown,
    DatabaseError,
    DatabaseRefused,
    DatabaseUnreachable,
    StatementFailed,
    TransactionConflict,
)

# What `except` needs to name to catch all that the driver raises for reasons outside our code.
DRIVER_ERRORS: Final = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
)

# Undone, and worth another try: another transaction was in the way, or time ran out; also a plan
# that became stale because the schema moved on.
CONFLICTS: Final = {
    "40000": "rolled back",
    "40001": "another transaction changed the same rows",
    "40P01": "two transactions waited for each other",
    "53100": "the server's disk is full",
    "53200": "the server has no memory left",
    "55P03": "a lock could not be had in time",
    "57014": "the server cancelled it, because it took too long or somebody asked for that",
}
# The server is there but not for us, not now. 25006: a standby, or a primary that became one.
ABSENCES: Final = {
    "25006": "it is read-only (a standby?)",
    "25P03": "the server ended a transaction that sat idle",
    "25P04": "the server ended a transaction that took too long",
    "53300": "it has too many connections",
    "57P01": "it is shutting down",
    "57P02": "it crashed and restarts",
    "57P03": "it is starting up",
    "57P05": "the server ended an idle session",
}
# What was prepared a moment ago is not there, or what was not is: another connection of the server
# answers than the one before.
POOLED: Final = dict.fromkeys(
    ("26000", "42P05"),
    "behind a pooler in transaction mode, set FOLIOT_DATABASE_POOLER=transaction",
)
# Nothing here gets better by waiting.
REFUSALS: Final = POOLED | {
    "28000": "check the user name and the server's pg_hba.conf",
    "28P01": "check user name and password",
    "3D000": "create the database first, or correct its name",
    "42501": "as an administrator: grant connect on the database to this role",
}
OUTCOME_OPEN: Final = frozenset({"08007", "40003"})


def connecting_failed(error: BaseException, url: str) -> DatabaseError:
    """What a failed attempt to connect means."""
    if isinstance(error, asyncpg.PostgresError) and (hint := REFUSALS.get(sqlstate_of(error))):
        return DatabaseRefused(url, str(error.args[0]), hint)
    if isinstance(error, ssl.SSLCertVerificationError):
        return DatabaseRefused(url, str(error), "check sslmode and sslrootcert")
    if isinstance(error, OSError | asyncpg.PostgresError | asyncpg.TargetServerAttributeNotMatched):
        return DatabaseUnreachable(url, absence_of(error))
    if isinstance(error, asyncpg.InternalClientError):  # cut off while it was being opened
        return DatabaseUnreachable(url, "the connection was closed")
    return DatabaseRefused(url, str(error), "check the options in the address")


def statement_failed(
    error: BaseException, url: str, *, statement: str | None, lost: bool, committing: bool
) -> DatabaseError:
    """What a failed statement means: `lost` if the connection went with it, `committing` if the
    server may have committed what it was sent (a COMMIT, or a statement outside a transaction)."""
    code = sqlstate_of(error)
    if lost or code[:2] == "08" or code in ABSENCES or code in OUTCOME_OPEN:
        # Read-only is an answer: nothing can have been committed.
        open_outcome = committing and code != "25006"
        return (CommitUnknown if open_outcome else DatabaseUnreachable)(url, absence_of(error))
    if code in POOLED:
        return DatabaseRefused(url, str(error.args[0]), POOLED[code])
    if code in CONFLICTS:
        return TransactionConflict(CONFLICTS[code], code, statement)
    if isinstance(error, asyncpg.InvalidCachedStatementError | asyncpg.OutdatedSchemaCacheError):
        return TransactionConflict("the schema changed meanwhile", code or "0A000", statement)
    if isinstance(error, asyncpg.DataError) and error.__cause__ is not None:
        # Refused by the driver, before it was sent. Its text quotes the argument; the cause does
        # not, and says what is wrong.
        return StatementFailed(f"an argument does not fit: {error.__cause__}", code, statement)
    if isinstance(error, asyncpg.PostgresError):
        position = getattr(error, "position", None)
        # The detail is left out: it may quote a whole row, and with it what nobody may log.
        return StatementFailed(
            str(error.args[0]),
            code or None,
            statement,
            getattr(error, "constraint_name", None),
            int(position) if position else None,
            getattr(error, "hint", None),
        )
    return StatementFailed(str(error), None, statement)


def absence_of(error: BaseException) -> str:
    """Why the server is not there, in words that stay the same while the cause does."""
    for cause in _causes(error):
        if reason := ABSENCES.get(sqlstate_of(cause)):
            return reason
    if isinstance(error, asyncpg.InterfaceError):
        return "the connection was closed"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ConnectionRefusedError) or "Connect call failed" in str(error):
        return "connection refused"
    if isinstance(error, FileNotFoundError):
        return "its socket is not there"
    if isinstance(error, OSError) and error.errno:
        return error.strerror or os.strerror(error.errno)
    return str(error) or type(error).__name__


def sqlstate_of(error: BaseException) -> str:
    return getattr(error, "sqlstate", None) or ""


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what led to it: a FATAL message hides behind "connection was closed"."""
    current: BaseException | None = error
    while current is not None:
        yield current
        current = current.__cause__
