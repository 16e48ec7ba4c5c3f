"""What an attempt writes inside its host: in batches, to the cap, none of it lost at the end."""

import os

from foliot.testing.handlers import a_task
from foliot.worker.commands.heard import Stream
from foliot.worker.hosts.attempt import LINES_AT_ONCE, Attempt
from foliot.worker.hosts.messages import Line, Logged, News
from foliot.worker.hosts.output import OUTPUT_BYTES_MAX, cost
from foliot.worker.tasks import LogSource


class Speaker:
    def __init__(self) -> None:
        self.said: list[News] = []

    def say(self, news: News) -> None:
        self.said.append(news)

    def batches(self) -> list[list[Line]]:
        return [news.lines for news in self.said if isinstance(news, Logged)]

    def lines(self) -> list[str]:
        return [line.message for batch in self.batches() for line in batch]


def test_many_lines_are_told_together_but_not_too_many() -> None:
    speaker = Speaker()
    attempt = Attempt(1, a_task("x"), speaker)
    attempt.write(LogSource.STDOUT, "".join(f"{n}\n" for n in range(2 * LINES_AT_ONCE + 1)) + "end")
    attempt.flush()
    assert [len(batch) for batch in speaker.batches()] == [LINES_AT_ONCE, LINES_AT_ONCE, 1, 1]
    assert speaker.lines()[-2:] == [str(2 * LINES_AT_ONCE), "end"]


def test_after_the_cap_one_line_is_told_and_no_more() -> None:
    """By that line the worker knows that there was more."""
    speaker = Speaker()
    attempt = Attempt(1, a_task("x"), speaker)
    attempt.write(LogSource.STDOUT, ("x" * 16_000 + "\n") * 2000)
    attempt.write(LogSource.STDERR, "late\n")
    *before, last = speaker.lines()
    assert sum(map(cost, before)) <= OUTPUT_BYTES_MAX < sum(map(cost, [*before, last]))
    assert not attempt.is_heard


async def test_what_a_program_wrote_last_is_heard_when_it_is_over() -> None:
    speaker = Speaker()
    attempt = Attempt(1, a_task("x"), speaker)
    stream = Stream(attempt, LogSource.STDERR)
    program = os.dup(stream.write_fd)
    stream.listen()
    os.write(program, b"last words \xc3")
    os.close(program)
    stream.close()
    attempt.flush()
    assert speaker.lines() == ["last words \ufffd"]
    assert stream.tail() == "last words \ufffd"
