"""A conflict is tried again, a doubt only where twice is the same as once."""

import pytest

from foliot.api.patience import insist
from foliot.store.errors import CommitUnknown, DatabaseUnreachable, TransactionConflict

CONFLICT = TransactionConflict("in the way", "40001")
DOUBT = CommitUnknown("postgresql://a", "lost")
LOSS = DatabaseUnreachable("postgresql://a", "gone")


class Change:
    """Fails as told, then succeeds."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.calls = 0

    async def __call__(self) -> str:
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)
        return "done"


@pytest.mark.parametrize("failures", [(), (CONFLICT,), (CONFLICT, CONFLICT), (DOUBT,)])
async def test_it_is_done_in_the_end(failures: tuple[Exception, ...]) -> None:
    change = Change(*failures)
    assert await insist(change) == "done"
    assert change.calls == len(failures) + 1


async def test_patience_has_an_end() -> None:
    change = Change(*[CONFLICT] * 9)
    with pytest.raises(TransactionConflict):
        await insist(change)
    assert change.calls == 3


@pytest.mark.parametrize("failure", [LOSS, ValueError("x")])
async def test_what_does_not_help_is_not_repeated(failure: Exception) -> None:
    change = Change(failure)
    with pytest.raises(type(failure)):
        await insist(change)
    assert change.calls == 1


async def test_what_may_have_been_done_is_done_again_only_if_that_changes_nothing() -> None:
    change = Change(DOUBT)
    with pytest.raises(CommitUnknown):
        await insist(change, repeatable=False)
    assert change.calls == 1
