"""Foliot's own roles and database: made when missing, put right at every start.

The role that connects is an ordinary one: it owns its database, and nothing exempts it from
row-level security. It may become the tenants' role, which owns nothing and cannot connect.
"""

from typing import Final

import asyncpg

from foliot.store.tenancy import TENANT_ROLE

ROLE: Final = "foliot"
DATABASE: Final = "foliot"

ORDINARY: Final = "nosuperuser nobypassrls nocreatedb nocreaterole noreplication"


async def provide_role(superuser: asyncpg.Connection, password: str) -> None:
    await _provide(superuser, ROLE)
    quoted = await superuser.fetchval("select quote_literal($1::text)", password)
    await superuser.execute(f"alter role {ROLE} with login {ORDINARY} password {quoted}")
    await provide_tenant_role(superuser)
    if not await superuser.fetchval("select 1 from pg_database where datname = $1", DATABASE):
        await superuser.execute(f"create database {DATABASE} owner {ROLE}")


async def provide_tenant_role(superuser: asyncpg.Connection) -> None:
    await _provide(superuser, TENANT_ROLE)
    await superuser.execute(f"alter role {TENANT_ROLE} with nologin {ORDINARY}")
    # From 16 on a membership may lack the right to switch; granting it again restores that.
    switching = " with set true" if superuser.get_server_version().major >= 16 else ""
    await superuser.execute(f"grant {TENANT_ROLE} to {ROLE}{switching}")


async def _provide(superuser: asyncpg.Connection, role: str) -> None:
    if not await superuser.fetchval("select 1 from pg_roles where rolname = $1", role):
        await superuser.execute(f"create role {role}")
