"""The product's way to the database, with a simulated one at its end.

A statement is known by its name; what it does is in `scheduler_statements`, `worker_statements` and
`following`.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from chaos.simulation import following, scheduler_statements, worker_statements
from chaos.simulation.engine import wait_for
from chaos.simulation.network import URL, Ask
from chaos.simulation.store import SimulatedStore
from foliot.store.database import Database
from foliot.store.errors import CommitUnknown, DatabaseUnreachable
from foliot.store.session import Session
from foliot.store.statements import Statement

READS: Final = {**scheduler_statements.READS, **worker_statements.READS}
CHANGES: Final = {**scheduler_statements.CHANGES, **worker_statements.CHANGES}


class SimulatedSession(Session):
    """Each statement commits by itself; or, after `begin`, all of them with `commit`."""

    def __init__(self, store: SimulatedStore, read_time: Callable[[], None]) -> None:
        self.url = URL
        self._store = store
        self._set_time = read_time
        self._in_transaction = False
        self._deeds: list[following.Deed] = []

    async def fetch(self, statement: Statement, *arguments: object) -> Any:  # noqa: ANN401
        return await self.ask(statement.name, arguments)

    async def fetch_row(self, statement: Statement, *arguments: object) -> Any:  # noqa: ANN401
        return await self.ask(statement.name, arguments)

    async def fetch_value(self, statement: Statement, *arguments: object) -> Any:  # noqa: ANN401
        return await self.ask(statement.name, arguments)

    async def execute(self, statement: Statement, *arguments: object) -> int:
        count: int = await self.ask(statement.name, arguments)
        return count

    async def ask(self, name: str, arguments: tuple[Any, ...]) -> Any:  # noqa: ANN401
        store, set_time = self._store, self._set_time
        if self._in_transaction:
            return await self._ask_inside(name, arguments)
        if name == "dependents/read_news":
            work: Callable[..., Any] = following.read_news
            changes = False
        else:
            changes = name in CHANGES
            work = CHANGES[name] if changes else READS[name]

        def commit() -> Any:  # noqa: ANN401 - of any statement
            set_time()
            return work(store, *arguments)

        return await wait_for(Ask(name, commit, changes=changes))

    async def begin(self) -> None:
        self._in_transaction = True

    async def commit(self) -> None:
        self._in_transaction = False
        await wait_for(Ask("commit", self._commit))

    async def roll_back(self) -> None:
        """Nothing was changed; the locks are free."""
        self._in_transaction = False
        self._let_go()

    async def _ask_inside(self, name: str, arguments: tuple[Any, ...]) -> Any:  # noqa: ANN401
        def do() -> Any:  # noqa: ANN401 - of any statement
            self._set_time()
            store = self._store
            if name == "dependents/gather":
                children = following.lock_children(store, self, arguments[0])
                rows, deed = following.gather(store, children)
            else:
                self._keep_locks()
                rows, deed = following.follow(store, arguments)
            if rows:
                self._deeds.append(deed)
            return rows

        return await wait_for(Ask(name, do, changes=False, is_final=False))

    def _commit(self) -> None:
        self._set_time()
        if self._deeds:
            self._keep_locks()
        for deed in self._deeds:
            deed()
        self._let_go()

    def _keep_locks(self) -> None:
        """The server has ended a session that was idle in its transaction."""
        held = [since for holder, since in self._store.locked.values() if holder is self]
        if not held and self._in_transaction:
            raise DatabaseUnreachable(URL, "the session was ended")
        if not held or self._store.now - min(held) > following.IDLE:
            self._let_go()
            raise CommitUnknown(URL, "the session was ended")

    def _let_go(self) -> None:
        self._deeds = []
        locked = self._store.locked
        for child_id in [child for child, (holder, _) in locked.items() if holder is self]:
            del locked[child_id]


class SimulatedDatabase(Database):
    def __init__(self, store: SimulatedStore, read_time: Callable[[], None]) -> None:
        self.url = URL
        self._store = store
        self._read_time = read_time
        self._session = SimulatedSession(store, read_time)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Session]:
        yield SimulatedSession(self._store, self._read_time)

    async def fetch(self, statement: Statement, *arguments: object) -> Any:  # noqa: ANN401
        return await self._session.ask(statement.name, arguments)

    async def fetch_row(self, statement: Statement, *arguments: object) -> Any:  # noqa: ANN401
        return await self._session.ask(statement.name, arguments)

    async def fetch_value(self, statement: Statement, *arguments: object) -> Any:  # noqa: ANN401
        return await self._session.ask(statement.name, arguments)

    async def execute(self, statement: Statement, *arguments: object) -> int:
        return await self._session.execute(statement, *arguments)

    async def change(self, name: str, work: Callable[[SimulatedStore], Any]) -> Any:  # noqa: ANN401
        """What a client asks for, as the model does it."""
        store, set_time = self._store, self._read_time

        def commit() -> Any:  # noqa: ANN401 - of any change
            set_time()
            return work(store)

        return await wait_for(Ask(name, commit))
