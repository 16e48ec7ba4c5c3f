"""Modules that do not import: whoever asked for them is told why, and the rest goes on."""

import signal
from pathlib import Path
from typing import Final

import pytest

from foliot.testing.commands import clean_environ, eventually, foliot, foliot_up
from foliot.testing.visitor import Visitor

GOOD: Final = "from foliot import App\napp = App()\n@app.job\nasync def good(): return 'well'\n"
TWICE: Final = (
    "from foliot import App\none, two = App(), App()\n"
    "@one.job\ndef work(): ...\n@two.job(name='work')\ndef other(): ...\n"
)
# By what is wrong: the module, a line of what is said about it, and the last words.
BROKEN: Final = {
    "raises": ("1 / 0\n", "Traceback", "ZeroDivisionError: division by zero"),
    "is no Python": ("def broken(:\n", "SyntaxError", "SyntaxError"),
    "leaves": ("import sys\nsys.exit(3)\n", "Traceback", "SystemExit: 3"),
    "dies": ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n", "error:", "signal 11"),
    "exits": ("import os\nos._exit(5)\n", "error:", "status 5"),
    "needs another": ("import no_such_thing\n", "Traceback", "No module named 'no_such_thing'"),
    "names a handler twice": (TWICE, "error:", "two handlers are named 'work'"),
}


@pytest.mark.parametrize("wrong", BROKEN)
def test_a_worker_says_why_it_cannot_begin_and_ends(
    wrong: str, open_folder: Path, database_url: str
) -> None:
    text, said, last_words = BROKEN[wrong]
    (open_folder / "broken.py").write_text(text)
    environ = clean_environ(FOLIOT_DATABASE_URL=database_url)
    with foliot("worker", "run", "broken.py", environ=environ, cwd=open_folder) as command:
        assert command.ended() == 1, command.output
    assert said in command.output
    assert command.lines[-1].startswith("error: ")
    assert last_words in command.lines[-1]
    assert "foliot/worker" not in command.output, "how we import is of no interest"


def test_a_broken_module_beside_a_running_server_is_told_once(
    open_folder: Path, database_url: str
) -> None:
    for name, text in (("broken.py", "1 / 0\n"), ("good.py", GOOD)):
        (open_folder / name).write_text(text)
    environ = clean_environ(FOLIOT_DATABASE_URL=database_url)
    data = open_folder / "data"
    with foliot_up(data, "broken.py", environ=environ, cwd=open_folder) as ready:
        ready.command.line_with("the rest keeps running; edit the file to try again")
        visitor = Visitor(ready.url, (data / "api-key").read_text().strip())
        every_second = {"type": "CRON", "cron_expression": "* * * * * *"}
        cron = visitor.make_job("good", every_second)
        lost = visitor.enqueue(visitor.make_job("bad"))
        eventually(lambda: visitor.runs(cron), what="the scheduler goes on")
        place = ("--data-dir", str(data))
        with foliot("worker", "run", "good.py", *place, cwd=open_folder) as worker:
            eventually(
                lambda: "SUCCEEDED" in {run["status"] for run in visitor.runs(cron)},
                what="a worker of other modules works",
            )
            worker.send(signal.SIGTERM)
            assert worker.ended() == 0
        assert visitor.execution(lost)["status"] == "QUEUED"
        assert ready.is_ready()
        assert ready.command.output.count("cannot import") == 1
        assert ready.command.output.count("Traceback") == 1
