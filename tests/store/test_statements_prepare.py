"""Every statement fits the migrated schema, with every name written in full."""

import pytest

from foliot.store.database import Database
from foliot.store.errors import StatementFailed
from foliot.store.session import transaction
from foliot.store.statements import Statement, every_statement
from foliot.testing.database import sql

STATEMENTS = tuple(every_statement())


async def prepare(database: Database, statement: Statement) -> None:
    """Without a search_path: a table is found only by its full name."""
    async with database.connection() as session, transaction(session):
        await session.execute(sql("set local search_path = ''"))
        await session.run_script(
            statement.name, f"prepare it as {statement.sql}", timeout_seconds=5.0
        )
        await session.execute(sql("deallocate it"))


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement.name)
async def test_a_statement_fits_the_schema(database: Database, statement: Statement) -> None:
    await prepare(database, statement)


async def test_a_table_without_its_schema_is_found_out(database: Database) -> None:
    with pytest.raises(StatementFailed, match='relation "schema_migrations" does not exist'):
        await prepare(database, sql("select * from schema_migrations"))
