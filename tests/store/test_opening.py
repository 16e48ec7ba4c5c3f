"""A database that goes away while a role opens its ways to it is waited for."""

import pytest

from foliot.runtime.clock import SystemClock
from foliot.store.connecting import DEFAULTS
from foliot.store.database import Database
from foliot.store.errors import (
    CommitUnknown,
    DatabaseRefused,
    DatabaseUnreachable,
    TransactionConflict,
)
from foliot.store.opening import open_all
from foliot.testing.database import sql

ONE = sql("select 1")


class Fickle(Database):
    """Opens once it has failed in these ways."""

    failures: list[Exception]

    async def open(self) -> None:
        if self.failures:
            raise self.failures.pop(0)
        await super().open()


async def test_what_goes_away_while_it_is_opened_is_waited_for(database_url: str) -> None:
    first, second = Database(database_url), Fickle(database_url)
    second.failures = [
        DatabaseUnreachable(first.url, "connection was closed in the middle of operation"),
        CommitUnknown(first.url, "no answer in time"),
        TransactionConflict("the server cancelled it", "57014", "schema/read_settings"),
    ]
    try:
        await open_all([first, second], database_url, DEFAULTS, SystemClock())
        assert [await way.fetch_value(ONE) for way in (first, second)] == [1, 1]
    finally:
        await first.close()
        await second.close()


async def test_what_waiting_does_not_help_is_told(database_url: str) -> None:
    refused = Fickle(database_url)
    refused.failures = [DatabaseRefused(refused.url, "its encoding is SQL_ASCII", "create it anew")]
    with pytest.raises(DatabaseRefused):
        await open_all([refused], database_url, DEFAULTS, SystemClock())
