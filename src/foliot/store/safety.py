"""Limits the server itself keeps for us, because a frozen client cannot keep them.

They are defaults of the role we log in as, in this database only (`alter role … in database …
set`): a pooler would refuse them at connect time or leak them between clients. Any role may set
them for itself. An operator may choose stricter values; absent or looser ones are put right by
`foliot db migrate` and named in a warning until then.
"""

import logging
from dataclasses import dataclass
from typing import Final

from foliot.store.session import Session
from foliot.store.statements import statement

log = logging.getLogger(__name__)

_READ_SAFETY: Final = statement("schema/read_safety")

# In the server's own units: milliseconds for the timeouts, seconds for idle and interval.
LIMITS: Final[dict[str, int | str]] = {
    "statement_timeout": 5_000,
    "lock_timeout": 1_000,
    "idle_in_transaction_session_timeout": 2_000,
    "transaction_timeout": 10_000,  # known to servers from 17 on
    "client_connection_check_interval": 1_000,  # not on every operating system
    "tcp_keepalives_idle": 10,
    "tcp_keepalives_interval": 3,
    "tcp_keepalives_count": 3,
    "tcp_user_timeout": 19_000,
    # A session would keep the plans that it made when the tables were empty: with 200,000 rows one
    # page of a listing took over a minute. To plan anew takes some tenths of a millisecond.
    "plan_cache_mode": "force_custom_plan",
    # Compiling a statement took a second where running it takes twenty milliseconds.
    "jit": "off",
}


@dataclass(frozen=True)
class MissingLimit:
    """A setting whose default for this role is off or looser than we need."""

    name: str
    value: str
    limit: int | str
    role: str
    database: str

    def __str__(self) -> str:
        found = "off" if self.value == "0" else self.value
        bound = "at most " if isinstance(self.limit, int) else ""
        return f"{self.name} is {found}, should be {bound}{self.limit}"

    @property
    def is_kept(self) -> bool:
        if isinstance(self.limit, int):
            return 0 < int(self.value) <= self.limit
        return self.value == self.limit


async def missing_safety(session: Session) -> tuple[MissingLimit, ...]:
    """The limits a new session of this role would lack. A name this server does not know is not
    missing: there is nothing to set."""
    rows = await session.fetch(_READ_SAFETY, list(LIMITS))
    found = (MissingLimit(limit=LIMITS[row["name"]], **row) for row in rows)
    return tuple(entry for entry in found if not entry.is_kept)


async def warn_of_missing_safety(session: Session) -> None:
    if missing := await missing_safety(session):
        log.warning(
            "database %s: %s; a frozen client could hold its locks for long"
            " (run `foliot db migrate` as this role)",
            session.url,
            ", ".join(str(entry) for entry in missing),
        )


async def set_limit(session: Session, missing: MissingLimit) -> None:
    """Make the limit this role's default in this database.

    `alter role` takes no parameters: name and value come from `LIMITS`, the rest from the server.
    """
    change = f"alter role session_user in database %I set {missing.name} = {missing.limit}"
    script = f"do $$ begin execute format('{change}', current_database()); end $$"
    await session.run_script(f"set {missing.name}", script, timeout_seconds=10.0)


def tell_of_limit(limit: MissingLimit) -> None:
    """The role may be used by others too: what changed for them is said."""
    log.info(
        "set %s = %s for role %s in database %s",
        limit.name,
        limit.limit,
        limit.role,
        limit.database,
    )
