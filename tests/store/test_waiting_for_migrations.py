"""A role that starts waits for its tables, whatever the database says meanwhile."""

import logging

import pytest

from foliot.runtime.clock import SystemClock
from foliot.store.database import Database
from foliot.store.errors import CommitUnknown, DatabaseUnreachable, TransactionConflict
from foliot.store.readiness import Readiness, read_readiness
from foliot.wiring.migrated import wait_until_migrated


async def test_a_database_that_is_away_or_stands_still_is_waited_for(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failures = [
        DatabaseUnreachable("postgresql://", "it is starting up"),
        CommitUnknown("postgresql://", "no answer in time"),
        TransactionConflict("the server cancelled it", "57014", "schema/read_readiness"),
    ]

    async def read(asked: Database) -> Readiness:
        if failures:
            raise failures.pop(0)
        return await read_readiness(asked)

    monkeypatch.setattr("foliot.wiring.migrated.read_readiness", read)
    with caplog.at_level(logging.WARNING):
        await wait_until_migrated(database, SystemClock())
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "database postgresql",
        "database postgresql",
        "schema/read_readiness",
    ]
