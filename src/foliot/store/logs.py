"""What attempts said: appended in batches by the worker that ran them, read in pages.

Lines are fenced like ends: a worker writes them for attempts that it holds or has just ended. Each
is known by execution, fence and number, so that a batch may be written again after a lost answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import asyncpg

from foliot.core.ids import ExecutionId, TenantId, WorkerId, instant_of
from foliot.core.storable import clean_text
from foliot.store.database import Database
from foliot.store.session import Session
from foliot.store.statements import statement

_APPEND: Final = statement("logs/append")
_READ_PAGE: Final = statement("logs/read_page")
_COUNT: Final = statement("logs/count")

LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
WORD_CHARS_MAX: Final = 32
SEARCH_CHARS_MAX: Final = 200
# A trigger's id is of the moment the request was seen, by the clock of the database.
_SLACK: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line; `seq` counts from 1 within the attempt."""

    execution_id: ExecutionId
    fence: int
    attempt_number: int
    seq: int
    at: datetime
    level: str
    source: str
    message: str

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return len(self.message) + 64


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which lines: of this level or a more serious one, with these words, of one attempt."""

    level: str | None = None
    search: str | None = None
    attempt_number: int | None = None


@dataclass(frozen=True, slots=True)
class LogCursor:
    """The place after a line."""

    fence: int = 0
    seq: int = 0


BEGINNING: Final = LogCursor()
EVERYTHING: Final = LogFilter()


@dataclass(frozen=True, slots=True)
class LogPage:
    """`next` is where to go on: also after the last line, for who follows."""

    lines: tuple[LogLine, ...]
    next: LogCursor


async def append(
    database: Database,
    worker_id: WorkerId,
    lines: Sequence[LogLine],
    now: datetime | None = None,
) -> int:
    """How many were added; those of attempts that are not the worker's are left out."""
    return await database.execute(
        _APPEND,
        worker_id,
        [line.execution_id for line in lines],
        [line.fence for line in lines],
        [line.attempt_number for line in lines],
        [line.seq for line in lines],
        [line.at for line in lines],
        [clean_text(line.level, WORD_CHARS_MAX) for line in lines],
        [clean_text(line.source, WORD_CHARS_MAX) for line in lines],
        [clean_text(line.message, len(line.message)) for line in lines],
        now,
    )


async def read_page(
    database: Database | Session,
    tenant_id: TenantId,
    execution_id: ExecutionId,
    after: LogCursor = BEGINNING,
    wanted: LogFilter = EVERYTHING,
    limit: int = 1000,
) -> LogPage:
    """Up to `limit` lines after a place."""
    rows = await database.fetch(
        _READ_PAGE,
        execution_id,
        tenant_id,
        instant_of(execution_id) - _SLACK,
        after.fence,
        after.seq,
        *_columns(wanted),
        limit,
    )
    lines = tuple(_line(execution_id, row) for row in rows)
    return LogPage(lines, LogCursor(lines[-1].fence, lines[-1].seq) if lines else after)


async def count_lines(
    database: Database, tenant_id: TenantId, execution_id: ExecutionId, wanted: LogFilter
) -> int:
    since = instant_of(execution_id) - _SLACK
    return int(
        await database.fetch_value(_COUNT, execution_id, tenant_id, since, *_columns(wanted))
    )


def _columns(wanted: LogFilter) -> tuple[object, ...]:
    search = None if not wanted.search else clean_text(wanted.search, SEARCH_CHARS_MAX)
    return levels_from(wanted.level), search, wanted.attempt_number


def levels_from(level: str | None) -> list[str] | None:
    """The level and those more serious; of one that is not known, itself."""
    if level is None:
        return None
    word = level.upper()
    return list(LEVELS[LEVELS.index(word) :]) if word in LEVELS else [word]


def _line(execution_id: ExecutionId, row: asyncpg.Record) -> LogLine:
    return LogLine(
        execution_id,
        row["fence"],
        row["attempt_number"],
        row["seq"],
        row["at"],
        row["level"],
        row["source"],
        row["message"],
    )
