"""Checking the ledger: whether every scheduled instant of every job has exactly one outcome.

Jobs are checked a page at a time, and their outcomes are read in pages too: what is kept in memory
grows with what is wrong and what is live, not with the history. Nothing is locked and no snapshot
is held; what happens meanwhile is not judged.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Final

import asyncpg

from foliot.core.errors import InvalidInput
from foliot.core.ids import EPOCH, ExecutionId, JobId, TenantId
from foliot.core.schedule.ledger import Account, JobLedger, unreadable
from foliot.core.schedule.stretches import Standing, Window, stretches
from foliot.store.database import Database
from foliot.store.ledger_rows import (
    Outcomes,
    list_jobs,
    read_horizon,
    schedule_version_from,
    skip_from,
)

JOBS: Final = 100


@dataclass(frozen=True, slots=True)
class Scope:
    """What is checked, as of when. `tenant_id` None: everybody's. `clamped`: the history of what
    was asked for first is gone, and the window begins later."""

    tenant_id: TenantId | None
    job_id: JobId | None
    window: Window
    now: datetime
    clamped: bool


@dataclass(frozen=True, slots=True)
class LedgerPage:
    """Some jobs, how many rows it took to check them, and the last of them: None at the end."""

    ledgers: tuple[JobLedger, ...]
    rows: int
    last: JobId | None


class TooManyOutcomes(Exception):
    """These jobs have more outcomes in the window than the caller has time for."""


async def open_scope(
    database: Database,
    *,
    tenant_id: TenantId | None = None,
    job_id: JobId | None = None,
    from_: datetime | None = None,
    to: datetime | None = None,
    now: datetime | None = None,
) -> Scope:
    """What can be checked of what is asked for: not the future, and not what is forgotten."""
    if from_ is not None and from_ < EPOCH:
        raise InvalidInput("lies before 1970", field="from", hint="give a later one, or none")
    horizon = await read_horizon(database, now)
    begin, end = from_ or EPOCH, min(to or horizon.now, horizon.now)
    if to is not None and begin >= to:
        raise InvalidInput("is not after from", field="to", hint="to itself no longer counts")
    clamped = horizon.begins is not None and begin < horizon.begins
    if clamped and horizon.begins is not None:
        begin = horizon.begins
    return Scope(tenant_id, job_id, Window(begin, max(begin, end)), horizon.now, clamped)


async def check_page(
    database: Database,
    scope: Scope,
    *,
    after: JobId | None = None,
    limit: int = JOBS,
    rows_max: int | None = None,
) -> LedgerPage:
    """Check the next jobs after one. `TooManyOutcomes` once that takes more than `rows_max`."""
    standings = await list_jobs(database, scope.tenant_id, scope.job_id, after=after, limit=limit)
    if not standings:
        return LedgerPage((), 0, None)
    outcomes = Outcomes(database, scope.tenant_id, [each.job_id for each in standings])
    books = _Books(scope, standings)
    books.open(await outcomes.schedules())
    window = scope.window
    steps = (
        (outcomes.live, books.take_live),
        (outcomes.ended, books.take_ended),
        (outcomes.skips, books.take_skips),
    )
    for pages, take in steps:
        async for rows in pages(window):
            take(rows)
            if rows_max is not None and outcomes.rows > rows_max:
                raise TooManyOutcomes
    more = scope.job_id is None and len(standings) >= limit
    return LedgerPage(books.close(), outcomes.rows, standings[-1].job_id if more else None)


class _Books:
    """The accounts of some jobs. One that cannot be read keeps no other from being checked."""

    def __init__(self, scope: Scope, standings: Sequence[Standing]) -> None:
        self._scope = scope
        self._standings = {each.job_id: each for each in standings}
        self._accounts: dict[JobId, Account] = {}
        self._closed: dict[JobId, JobLedger] = {}
        self._live: dict[ExecutionId, asyncpg.Record] = {}

    def open(self, rows: Sequence[asyncpg.Record]) -> None:
        for job_id, own in groupby(rows, key=itemgetter("job_id")):
            standing = self._standings[job_id]
            known = [row for row in own if row["version"] <= standing.version]
            try:
                versions = [schedule_version_from(row) for row in known]
                parts = stretches(versions, standing, self._scope.now)
                account = Account(standing, parts, self._scope.window, self._scope.now)
            except Exception as error:  # noqa: BLE001 - whatever is wrong with it, it is this job's
                self._closed[job_id] = unreadable(standing, error)
            else:
                self._accounts[job_id] = account

    def take_live(self, rows: Sequence[asyncpg.Record]) -> None:
        self._live.update((row["id"], row) for row in rows)

    def take_ended(self, rows: Sequence[asyncpg.Record]) -> None:
        for row in rows:
            if not row["is_outcome"]:
                continue
            self._add_fire(row)
            # It was live when we looked there, and has ended since.
            self._live.pop(row["id"], None)
            if row["is_live"]:
                self._tell(row, Account.add_double, row["scheduled_time"])

    def take_skips(self, rows: Sequence[asyncpg.Record]) -> None:
        for row in rows:
            self._tell(row, Account.add_skip, row["schedule_version"], skip_from(row))

    def close(self) -> tuple[JobLedger, ...]:
        for row in self._live.values():
            self._add_fire(row)
        for job_id, account in list(self._accounts.items()):
            try:
                self._closed[job_id] = account.close()
            except Exception as error:  # noqa: BLE001 - as above
                self._closed[job_id] = unreadable(self._standings[job_id], error)
        lost = LookupError("none of its versions is there")
        return tuple(
            self._closed.get(job_id) or unreadable(standing, lost)
            for job_id, standing in self._standings.items()
        )

    def _add_fire(self, row: asyncpg.Record) -> None:
        self._tell(row, Account.add_fire, row["job_version"], row["scheduled_time"])

    def _tell(self, row: asyncpg.Record, tell: Callable[..., None], *values: object) -> None:
        account = self._accounts.get(row["job_id"])
        if account is None:
            return
        try:
            tell(account, *values)
        except Exception as error:  # noqa: BLE001 - as above
            del self._accounts[row["job_id"]]
            self._closed[row["job_id"]] = unreadable(self._standings[row["job_id"]], error)
