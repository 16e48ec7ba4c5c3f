"""What a driver's error means for the one who gets it."""

import socket
import ssl

import asyncpg
import pytest

from foliot.store.connecting import OLDEST_SERVER, check_version
from foliot.store.errors import (
    CommitUnknown,
    DatabaseError,
    DatabaseRefused,
    DatabaseUnreachable,
    StatementFailed,
    TransactionConflict,
)
from foliot.store.failures import connecting_failed, statement_failed

URL = "postgresql://foliot@db/foliot"


def caused_by(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "kind", "reason"),
    [
        (ConnectionRefusedError(111, "x"), DatabaseUnreachable, "connection refused"),
        (OSError("Multiple exceptions: [Errno 111] Connect call failed ('::1', 5432)"),
         DatabaseUnreachable, "connection refused"),
        (ConnectionResetError(104, "Connection reset by peer"), DatabaseUnreachable, "reset"),
        (FileNotFoundError(2, "No such file"), DatabaseUnreachable, "socket is not there"),
        (socket.gaierror(-2, "Name or service not known"), DatabaseUnreachable, "not known"),
        (TimeoutError(), DatabaseUnreachable, "no answer in time"),
        (asyncpg.CannotConnectNowError("starting"), DatabaseUnreachable, "starting up"),
        (asyncpg.TooManyConnectionsError("sorry"), DatabaseUnreachable, "too many connections"),
        (asyncpg.AdminShutdownError("bye"), DatabaseUnreachable, "shutting down"),
        (asyncpg.ProtocolViolationError("pooler says no"), DatabaseUnreachable, "pooler says no"),
        (asyncpg.InternalClientError("cannot switch"), DatabaseUnreachable, "was closed"),
        (asyncpg.InvalidPasswordError("wrong"), DatabaseRefused, "check user name and password"),
        (asyncpg.DuplicatePreparedStatementError("x"), DatabaseRefused, "_POOLER=transaction"),
        (asyncpg.InvalidCatalogNameError("no db"), DatabaseRefused, "create the database"),
        (asyncpg.InvalidAuthorizationSpecificationError("hba"), DatabaseRefused, "pg_hba"),
        (asyncpg.ClientConfigurationError("sslmode"), DatabaseRefused, "options in the address"),
        (ssl.SSLCertVerificationError(1, "bad"), DatabaseRefused, "sslrootcert"),
    ],
)  # fmt: skip
def test_a_failed_attempt_to_connect_says_whether_waiting_helps(
    error: BaseException, kind: type[DatabaseError], reason: str
) -> None:
    failure = connecting_failed(error, URL)
    assert type(failure) is kind
    assert reason in str(failure)
    assert URL in str(failure)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (asyncpg.SerializationError("x"), TransactionConflict),
        (asyncpg.DeadlockDetectedError("x"), TransactionConflict),
        (asyncpg.LockNotAvailableError("x"), TransactionConflict),
        (asyncpg.DiskFullError("x"), TransactionConflict),
        (asyncpg.OutOfMemoryError("x"), TransactionConflict),
        (asyncpg.InvalidCachedStatementError("x"), TransactionConflict),
        (asyncpg.OutdatedSchemaCacheError("x"), TransactionConflict),
        (asyncpg.UniqueViolationError("x"), StatementFailed),
        (asyncpg.QueryCanceledError("x"), TransactionConflict),
        (asyncpg.PostgresSyntaxError("x"), StatementFailed),
        (asyncpg.InvalidSQLStatementNameError("x"), DatabaseRefused),
        (asyncpg.DuplicatePreparedStatementError("x"), DatabaseRefused),
        (asyncpg.InterfaceError("another operation is in progress"), StatementFailed),
        (asyncpg.ReadOnlySQLTransactionError("x"), DatabaseUnreachable),
    ],
)
@pytest.mark.parametrize("committing", [False, True])
def test_an_answered_failure_is_never_an_unknown_commit(
    error: BaseException, kind: type[DatabaseError], committing: bool
) -> None:
    failure = statement_failed(error, URL, statement="a/b", lost=False, committing=committing)
    assert type(failure) is kind


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError(104, "reset"),
        TimeoutError(),
        asyncpg.ConnectionDoesNotExistError("closed in the middle"),
        asyncpg.AdminShutdownError("x"),
        asyncpg.CrashShutdownError("x"),
        asyncpg.IdleInTransactionSessionTimeoutError("x"),
        asyncpg.TransactionResolutionUnknownError("x"),
        asyncpg.StatementCompletionUnknownError("x"),
        asyncpg.InterfaceError("connection is closed"),
    ],
)
def test_a_lost_connection_leaves_a_commit_open_and_nothing_else(error: BaseException) -> None:
    lost = not isinstance(error, asyncpg.PostgresError)
    before = statement_failed(error, URL, statement="a/b", lost=lost, committing=False)
    during = statement_failed(error, URL, statement="commit", lost=lost, committing=True)
    assert type(before) is DatabaseUnreachable
    assert type(during) is CommitUnknown


def test_the_servers_last_words_are_the_reason() -> None:
    error = caused_by(
        asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation"),
        asyncpg.IdleInTransactionSessionTimeoutError("terminating connection"),
    )
    failure = statement_failed(error, URL, statement=None, lost=True, committing=False)
    assert str(failure).endswith("the server ended a transaction that sat idle")


def test_a_refused_argument_is_not_quoted() -> None:
    error = caused_by(
        asyncpg.DataError("invalid input for query argument $1: 'hunter2' (expected int)"),
        TypeError("expected int"),
    )
    failure = statement_failed(error, URL, statement="a/b", lost=False, committing=True)
    assert str(failure) == "a/b: an argument does not fit: expected int (22000)"


def test_a_refusal_is_one_line() -> None:
    error = asyncpg.InsufficientPrivilegeError('permission denied for database "foliot"')
    error.detail = "User does not have CONNECT privilege."
    assert str(connecting_failed(error, URL)) == (
        f'database {URL} refuses us: permission denied for database "foliot"'
        " (as an administrator: grant connect on the database to this role)"
    )


def test_a_violated_constraint_is_named() -> None:
    error = asyncpg.UniqueViolationError("duplicate key")
    error.constraint_name = "jobs_name_key"
    error.detail = "Key (name)=(hunter2) already exists."
    failure = statement_failed(error, URL, statement="jobs/create", lost=False, committing=True)
    assert isinstance(failure, StatementFailed)
    assert failure.constraint == "jobs_name_key"
    assert str(failure) == "jobs/create: duplicate key (23505)"


def test_a_server_that_is_too_old_is_refused_with_the_version_to_use() -> None:
    check_version(OLDEST_SERVER, "UTF8", URL)
    with pytest.raises(DatabaseRefused, match=r"it is PostgreSQL 14 \(use PostgreSQL 15 or newer"):
        check_version(OLDEST_SERVER - 1, "UTF8", URL)


def test_a_database_that_cannot_hold_every_character_is_refused() -> None:
    with pytest.raises(DatabaseRefused, match="its encoding is SQL_ASCII"):
        check_version(OLDEST_SERVER, "SQL_ASCII", URL)
