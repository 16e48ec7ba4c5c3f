"""Points in what a node says to the database at which something can be made to happen.

A statement is known by its file's name, `jobs/fire_due`, told from the line of purpose that it
opens with, or by the word people say for it; what has no file is `begin`, `commit`, `rollback`.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from enum import Enum, auto
from functools import cache, lru_cache
from typing import Final, Literal, NamedTuple

from foliot.store.statements import every_statement
from foliot.testing.wire import Answer, Order

# before: the statement is about to be forwarded.
# inside: the server has executed it, and the transaction it is in is still open.
# after: it is committed, and the answer that tells so (its own, or that of the COMMIT) is about to
#     be passed on.
When = Literal["before", "inside", "after"]

SPOKEN: Final[Mapping[str, str]] = {
    "admit": "limits/admit_held",
    "cancel": "executions/cancel",
    "change": "jobs/update",
    "claim": "executions/claim_ready",
    "enqueue": "executions/enqueue",
    "finish": "executions/finish",
    "fire": "jobs/fire_due",
    "follow": "dependents/follow",
    "give": "shards/give",
    "heartbeat": "workers/beat",
    "pause": "jobs/pause",
    "release": "executions/release_due",
    "renew": "shards/renew",
    "rescue": "executions/rescue",
    "resume": "jobs/resume",
    "stage": "jobs/stage_due",
    "take": "shards/take",
}
CONTROLS: Final = frozenset({"begin", "commit", "rollback"})


class Point(NamedTuple):
    """Where: at the next statement of this name (empty: any) whose text or arguments hold
    `words`, in as much of them as the first 64 KiB."""

    when: When
    statement: str = ""
    words: bytes = b""

    def __str__(self) -> str:
        return f"{self.when} {self.statement or 'any'}"


def do_nothing() -> None: ...


class Strike:
    """A deed that waits for its point. With `cut` the connection ends there: the statement is not
    forwarded, or its answer is lost."""

    def __init__(self, point: Point, deed: Callable[[], None], *, cut: bool) -> None:
        self.point = point
        self.cut = cut
        self.struck = asyncio.Event()
        self._deed = deed

    def strike(self) -> None:
        self.struck.set()
        self._deed()


class Verdict(Enum):
    STRIKE = auto()
    LATER = auto()  # at the end of the next round: the transaction is still open
    AGAIN = auto()  # at another statement: this one came to nothing


def judge(when: When, answer: Answer) -> Verdict:
    """What the answer to a statement means for who waits `inside` or `after` it."""
    if answer.failed or answer.tag == b"ROLLBACK":
        return Verdict.AGAIN
    if when == "inside":
        return Verdict.STRIKE if answer.in_transaction else Verdict.AGAIN
    return Verdict.LATER if answer.in_transaction else Verdict.STRIKE


class Points:
    """The strikes that wait, in the order they were asked for, and how often each point came."""

    def __init__(self) -> None:
        self.seen: Counter[Point] = Counter()
        self._waiting: list[Strike] = []

    def wait_for(self, strike: Strike) -> None:
        self._waiting.append(strike)

    def forget(self) -> None:
        self._waiting.clear()

    def take(self, name: str, order: Order) -> Strike | None:
        """The first for this statement, which then waits no longer; the others wait on."""
        for strike in self._waiting:
            if _matches(strike.point, name, order):
                self._waiting.remove(strike)
                return strike
        return None


def _matches(point: Point, name: str, order: Order) -> bool:
    return point.statement in ("", name) and (
        point.words in order.sql or point.words in order.arguments
    )


def file_name(statement: str) -> str:
    """The name of a statement that may be called by its word; an error if there is none such."""
    name = SPOKEN.get(statement, statement)
    if name and name not in CONTROLS and name not in _purposes().values():
        raise ValueError(f"no statement is called {statement!r}")
    return name


@lru_cache(maxsize=1024)
def name_of(sql: bytes) -> str:
    """Empty for a statement that has no name. Its purpose is enough to know it by, so that one
    whose body was changed on purpose keeps its name."""
    first_line = sql.partition(b"\n")[0]
    if name := _purposes().get(first_line):
        return name
    word = sql.strip().lower().decode(errors="replace")
    return word if word in CONTROLS else ""


@cache
def _purposes() -> Mapping[bytes, str]:
    return {each.sql.partition("\n")[0].encode(): each.name for each in every_statement()}
