"""Foliot's own role and database: made when missing, put right at every start.

The role is an ordinary one: it owns its database, and nothing exempts it from row-level security.
"""

from typing import Final

import asyncpg

ROLE: Final = "foliot"
DATABASE: Final = "foliot"

ATTRIBUTES: Final = "login nosuperuser nobypassrls nocreatedb nocreaterole noreplication"


async def provide_role(superuser: asyncpg.Connection, password: str) -> None:
    if not await superuser.fetchval("select 1 from pg_roles where rolname = $1", ROLE):
        await superuser.execute(f"create role {ROLE}")
    quoted = await superuser.fetchval("select quote_literal($1::text)", password)
    await superuser.execute(f"alter role {ROLE} with {ATTRIBUTES} password {quoted}")
    if not await superuser.fetchval("select 1 from pg_database where datname = $1", DATABASE):
        await superuser.execute(f"create database {DATABASE} owner {ROLE}")
