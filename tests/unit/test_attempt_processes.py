"""What an attempt has started on its loop ends with it, as far as that is for it to say."""

from asyncio import SubprocessTransport

import pytest

from foliot.testing.handlers import a_task
from foliot.worker.hosts.attempt import Attempt
from foliot.worker.hosts.messages import News


class Nobody:
    def say(self, news: News) -> None: ...


class Running(SubprocessTransport):
    def __init__(self, error: OSError | None = None) -> None:
        super().__init__()
        self.kills = 0
        self._error = error

    def get_returncode(self) -> int | None:
        return None

    def kill(self) -> None:
        self.kills += 1
        if self._error is not None:
            raise self._error


@pytest.mark.parametrize("error", [ProcessLookupError(), PermissionError()])
def test_one_that_cannot_be_ended_is_left_and_the_others_end(error: OSError) -> None:
    attempt = Attempt(1, a_task("x"), Nobody())
    processes = [Running(error), Running()]
    attempt.processes.extend(processes)
    attempt.end_processes()
    assert [one.kills for one in processes] == [1, 1]
