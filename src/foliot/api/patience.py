"""Another transaction in the way is no reason to send the caller away: try again, a few times."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from foliot.api.refusals import AnswerLost
from foliot.store.errors import CommitUnknown, DatabaseUnreachable, TransactionConflict

Result = TypeVar("Result")

_TRIES: Final = 3


async def insist(change: Callable[[], Awaitable[Result]], *, repeatable: bool = True) -> Result:
    """Do a change; after a conflict nothing of it was done, so it is done again.

    With `repeatable`, doing it twice is the same as once: then also after a commit that nobody
    confirmed.
    """
    for _ in range(_TRIES - 1):
        try:
            return await change()
        except TransactionConflict:
            continue
        except CommitUnknown:
            if not repeatable:
                raise
    return await change()


async def told(answer: Awaitable[Result]) -> Result:
    """What is read for the answer to a change: it is made, also if this cannot be read."""
    try:
        return await answer
    except (DatabaseUnreachable, TransactionConflict) as lost:
        raise AnswerLost(str(lost)) from None
