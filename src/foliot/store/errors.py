"""What a database can do to us, as small types with data. The driver's exceptions end here.

The type says what a caller may do: after `DatabaseUnreachable` and `TransactionConflict` nothing
was changed and the work may be done again; after `CommitUnknown` it may or may not have been done,
so read by key first; the others come again until somebody changes something.
No message shows a password: `url` is always the one without it.
"""

from dataclasses import dataclass
from typing import ClassVar

from foliot.core.errors import FoliotError, InvalidInput

URL_VARIABLE = "FOLIOT_DATABASE_URL"


class DatabaseError(FoliotError):
    """Anything between us and the database."""


@dataclass(eq=False)
class InvalidDatabaseUrl(InvalidInput):
    """The address is malformed; it is never shown, since it may hold a password."""

    field: str | None = URL_VARIABLE


@dataclass(eq=False)
class DatabaseUnreachable(DatabaseError):
    """No connection, or it was lost before anything could be committed."""

    code: ClassVar[str] = "SCHEDULER_UNAVAILABLE"

    url: str
    reason: str

    def __str__(self) -> str:
        return f"database {self.url} is not reachable: {self.reason}"


@dataclass(eq=False)
class DatabaseRefused(DatabaseError):
    """The server answers and says no: waiting does not help, somebody must change something."""

    url: str
    reason: str
    hint: str

    def __str__(self) -> str:
        return f"database {self.url} refuses us: {self.reason} ({self.hint})"


@dataclass(eq=False)
class CommitUnknown(DatabaseError):
    """The connection was lost between a commit and its answer: read by key before deciding."""

    code: ClassVar[str] = "SCHEDULER_UNAVAILABLE"

    url: str
    reason: str

    def __str__(self) -> str:
        return f"database {self.url} did not confirm a commit: {self.reason}"


@dataclass(eq=False)
class TransactionConflict(DatabaseError):
    """Another transaction was in the way, or time ran out: undone, and may be tried again."""

    code: ClassVar[str] = "SCHEDULER_UNAVAILABLE"

    reason: str
    sqlstate: str
    statement: str | None = None

    def __str__(self) -> str:
        return f"{self.statement or 'transaction'}: {self.reason} ({self.sqlstate})"


@dataclass(eq=False)
class StatementFailed(DatabaseError):
    """The server will not do this, however often it is asked."""

    reason: str
    sqlstate: str | None = None
    statement: str | None = None
    constraint: str | None = None
    position: int | None = None  # of a character in the text sent, from 1
    hint: str | None = None  # what the server advises

    def __str__(self) -> str:
        code = f" ({self.sqlstate})" if self.sqlstate else ""
        return f"{self.statement or 'transaction'}: {self.reason}{code}"


@dataclass(eq=False)
class InvalidMigrations(DatabaseError):
    """The files themselves cannot be a history: a gap, a number used twice, a strange name."""

    reason: str

    def __str__(self) -> str:
        return f"migrations: {self.reason}"


@dataclass(eq=False)
class MigrationFailed(DatabaseError):
    """One file did not run to its end; its transaction is undone."""

    migration: str
    reason: str
    line: int | None = None
    hint: str | None = None

    def __str__(self) -> str:
        where = f"{self.migration}, line {self.line}" if self.line else self.migration
        advice = f"; {self.hint}" if self.hint else ""
        return f"migration {where}: {self.reason} (the database is as it was){advice}"


@dataclass(eq=False)
class MigrationBlocked(DatabaseError):
    """A lock could not be had for the whole of our patience; nothing was changed."""

    waited_seconds: float
    reason: str

    def __str__(self) -> str:
        return (
            f"migration gave up after {self.waited_seconds:.0f} s: {self.reason}"
            " (find who holds the lock in pg_stat_activity and pg_locks, then migrate again)"
        )


@dataclass(eq=False)
class MigrationChanged(DatabaseError):
    """A file was edited after it had been applied: what the database has is not what it says."""

    migration: str

    def __str__(self) -> str:
        return (
            f"migration {self.migration} was changed after it was applied here"
            " (put the file back as it was and write a new migration)"
        )


@dataclass(eq=False)
class SchemaNewer(DatabaseError):
    """A newer Foliot has migrated this database; an older one must not write to it."""

    level: int
    known: int

    def __str__(self) -> str:
        return (
            f"the database has migration {self.level}, this Foliot knows {self.known}"
            " (install the newer Foliot)"
        )


# Data, integrity, limits of the server; and a statement that took too long.
_OF_A_ROW = ("22", "23", "54", "57014")


def may_be_a_row(failure: StatementFailed | TransactionConflict) -> bool:
    """Whether the fault may lie in one of the rows, or in their number: fewer may go through."""
    return (failure.sqlstate or "22").startswith(_OF_A_ROW)
